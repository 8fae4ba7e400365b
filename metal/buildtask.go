package metal

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// What a task holds in its record until it is told: see Order.Payload.
const (
	bootDoc document.Kind[provider.Boot] = "boot/1"
	workDoc document.Kind[wire.BootTask] = "boot-order/1"
)

// buildTask makes what a machine is told. It holds secrets.
func (p *Provider) buildTask(ctx context.Context, st State, payload []byte) (*wire.BootTask, error) {
	if st.Kind != wire.BootImage {
		o, err := workDoc.Decode("what the machine is to do", payload)
		return &o, err
	}
	b, err := bootDoc.Decode("what the machine is to boot", payload)
	if err != nil {
		return nil, err
	}
	u, err := p.unit(st.Machine)
	if err != nil {
		return nil, err
	}
	reg := u.registration()
	if b.Memory != nil && len(b.Memory.Key) > 0 {
		seed := b.Bootstrap
		seed.Machine, seed.Attempt, seed.Trust, seed.Started = u.id, b.Attempt, st.Trust, st.Since
		return &wire.BootTask{Kind: wire.BootImage, Machine: u.id, Attempt: b.Attempt, Hostname: b.Hostname, Bootstrap: &seed, Memory: b.Memory}, nil
	}
	k, err := p.o.Kernels.Of(ctx, b.Image)
	if err != nil {
		return nil, err
	}
	root, _ := k.Manifest.File(muster.FileRoot)
	digests, err := p.pieces.digest(ctx, b.Image, filepath.Join(k.Dir, root.Name))
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the image of machine %s cannot be read", u.id).Wrap(err)
	}
	seed := b.Bootstrap
	seed.Machine, seed.Attempt, seed.Trust, seed.Started = u.id, b.Attempt, st.Trust, st.Since
	o := &wire.BootTask{
		Kind: wire.BootImage, Machine: u.id, Attempt: b.Attempt, Hostname: b.Hostname, Bootstrap: &seed,
		Image: &wire.BootFiles{
			ID: b.Image, Memory: k.Manifest.Requires.Memory, Key: p.keys.of(st.Number, b.Image),
			Root: wire.BootFile{Path: st.Number + "/" + b.Image.Hex(), Size: root.Size, Piece: pieceSize, Pieces: digests},
		},
	}
	if p.o.Plain != "" {
		o.Image.Plain = p.o.Plain + "/boot/" + st.Number + "/root"
	}
	if !st.Address.IsValid() {
		return nil, muster.Errorf(muster.EUnavailable, "machine %s has no address", u.id).WithHint("ask again")
	}
	o.Links = []wire.BootLink{{MAC: managementOf(reg), Name: "mgmt0", Address: netip.PrefixFrom(st.Address, p.o.Address.Bits()), Closed: p.o.Closed}}
	o.Scratch, _ = cleanDisks(reg)
	o.Scratch = slices.DeleteFunc(o.Scratch, func(d wire.CleanDisk) bool { return d.ReadOnly })
	if b.Memory != nil { // the end of a disk gets no file system
		for i, d := range o.Scratch {
			if want := b.Memory.Disk; d.Serial == want.Serial && d.Model == want.Model && d.Size == want.Size {
				o.Scratch[i].Keep = want.Keep
			}
		}
	}
	if b.Message != nil {
		for i, mac := range messagesOf(reg) {
			o.Links = append(o.Links, wire.BootLink{MAC: mac, Name: provider.MessageLink(i), Address: b.Message.AddressOf(i)})
		}
	}
	return o, nil
}
