package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/function"
	vmhost "github.com/muster-hpc/muster/vm/host"
)

// VMCard is a network card whose virtual functions are the message cards of virtual machines.
type VMCard struct {
	Name string // of its interface
	// Functions is how many it is to have; 0: as many as it has.
	Functions int
	// FirstVLAN and LastVLAN bound the VLANs of clusters' networks, one for each.
	FirstVLAN, LastVLAN int
}

// vmCardForm is how a card is written.
const vmCardForm = "NAME,vlans=FIRST-LAST[,functions=N]"

// ParseVMCard reads NAME,vlans=FIRST-LAST[,functions=N].
func ParseVMCard(text string) (VMCard, error) {
	var wrong []string
	parts := strings.Split(text, ",")
	c := VMCard{Name: parts[0]}
	if c.Name == "" || len(c.Name) > 15 || strings.ContainsAny(c.Name, "/: \t\n=") || c.Name == "." || c.Name == ".." {
		wrong = append(wrong, fmt.Sprintf("%q is not the name of an interface", c.Name))
	}
	seen := map[string]bool{}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		if seen[key] {
			wrong = append(wrong, key+" is given twice")
			continue
		}
		seen[key] = true
		var err error
		switch key {
		case "vlans":
			from, to, ranged := strings.Cut(value, "-")
			if !ranged {
				to = from
			}
			c.FirstVLAN, err = strconv.Atoi(from)
			last, also := strconv.Atoi(to)
			if c.LastVLAN = last; err != nil || also != nil || c.FirstVLAN < 1 || c.FirstVLAN > last || last > 4094 {
				wrong = append(wrong, fmt.Sprintf("vlans %q is not a range from 1 to 4094", value))
			}
		case "functions":
			if c.Functions, err = strconv.Atoi(value); err != nil || c.Functions < 1 || c.Functions > maxMachines {
				wrong = append(wrong, fmt.Sprintf("functions %q is not a number from 1 to %d", value, maxMachines))
			}
		default:
			wrong = append(wrong, fmt.Sprintf("there is no %q", key))
		}
	}
	if !seen["vlans"] {
		wrong = append(wrong, "vlans are missing: each cluster's network is one")
	}
	if len(wrong) > 0 {
		return VMCard{}, muster.Errorf(muster.EInvalid, "--vm-card %q: %s", text, strings.Join(wrong, "; ")).Because(muster.ReasonBadValue).
			WithHint("write %s, for instance ens5,vlans=100-199,functions=4", vmCardForm)
	}
	return c, nil
}

// openVMCard finds the card and its functions, and makes those where it has none and the site asks for them.
func (p *Provider) openVMCard() ([]function.Function, error) {
	want := p.cfg.VMCard
	fail := func(err error, hint string, args ...any) ([]function.Function, error) {
		return nil, muster.Errorf(muster.EConflict, "--vm-card %s: %v", want.Name, err).Because(muster.ReasonBadMachines).WithHint(hint, args...).Wrap(err)
	}
	card, err := p.functions.Card(want.Name)
	if err != nil {
		return fail(err, "`muster doctor --vm` lists the cards with virtual functions, and says how to set them")
	}
	if err := card.Enable(want.Functions); err != nil {
		return fail(err, "leave out functions, or end what uses them and write 0 to /sys/class/net/%s/device/sriov_numvfs", want.Name)
	}
	list, err := card.Functions()
	if err != nil {
		return fail(err, "`muster doctor --vm` says what it lacks")
	}
	if len(list) == 0 {
		p.cfg.Log.Warn("no virtual function can be given to virtual machines", "card", want.Name, "hint", "muster doctor --vm says why; --vm-card with functions=N makes them")
	}
	p.card = card
	return list, nil
}

// shareFunctions gives each machine a function, as far as there are enough: those near to the card first.
func (p *Provider) shareFunctions(list []function.Function, all []muster.PCIDevice) {
	near := func(m *machine) bool {
		i := slices.IndexFunc(all, func(d muster.PCIDevice) bool { return d.Address == p.card.Address })
		if i < 0 || all[i].MemoryNode == nil {
			return true
		}
		return slices.ContainsFunc(p.host.cpus, func(c cpu) bool { return c.node == *all[i].MemoryNode && slices.Contains(m.facts.CPUs, c.id) })
	}
	machines := p.all(nil)
	slices.SortFunc(machines, func(a, b *machine) int {
		if near(a) != near(b) {
			if near(a) {
				return -1
			}
			return 1
		}
		return a.index - b.index
	})
	for i, m := range machines {
		if i == len(list) {
			return
		}
		m.function = &list[i]
		m.facts.VMHost = withFunction(m.facts.VMHost, all, list[i].Address)
	}
}

// withFunction is a host as a slice of it is to know it that may have a virtual function.
func withFunction(h *muster.VMHost, all []muster.PCIDevice, address string) *muster.VMHost {
	i := slices.IndexFunc(all, func(d muster.PCIDevice) bool { return d.Address == address })
	if h == nil || i < 0 {
		return h
	}
	own := *h
	own.Devices = append(slices.Clone(h.Devices), all[i])
	return &own
}

// hostFacts are what this host has for the virtual machine of a machine.
func hostFacts(s vmhost.Source, m *machine) *muster.VMHost {
	h := s.Facts()
	if m.function == nil && len(m.devices) == 0 {
		return h
	}
	all := s.Read().Devices
	if m.function != nil {
		h = withFunction(h, all, m.function.Address)
	}
	return withDevices(h, all, m.devices)
}
