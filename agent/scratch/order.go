package scratch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Limits of an order.
const (
	maxOrder = 256 << 10 // bytes
	maxDisks = 512
)

// ReadOrder reads the file that names the disks.
func ReadOrder(name string) ([]wire.CleanDisk, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, muster.Errorf(muster.ENotFound, "nothing says which disks may be used").Wrap(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxOrder+1))
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "what says which disks may be used cannot be read").Wrap(err)
	}
	return DecodeOrder(b)
}

// DecodeOrder reads the JSON of a list of disks. EINVALID: it is none, or one of them
// is not told apart from others.
func DecodeOrder(b []byte) ([]wire.CleanDisk, error) {
	wrong := muster.Errorf(muster.EInvalid, "what says which disks may be used makes no sense").
		WithHint("server and agent are perhaps of different versions")
	var list []wire.CleanDisk
	d := json.NewDecoder(bytes.NewReader(b))
	if len(b) > maxOrder {
		return nil, wrong
	}
	if err := d.Decode(&list); err != nil {
		return nil, wrong.Wrap(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || len(list) > maxDisks {
		return nil, wrong
	}
	for _, x := range list {
		if x.Size <= 0 || x.Serial == "" && x.Model == "" || x.Keep < 0 || x.Keep > x.Size/2 {
			return nil, wrong
		}
	}
	return list, nil
}
