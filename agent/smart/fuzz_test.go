package smart

import "testing"

// FuzzDisk has a disk answer anything to every question.
func FuzzDisk(f *testing.F) {
	data, limits := sectors(used()...)
	descriptors, fixed := registersIn(0xf4, 0x2c)
	f.Add(data, limits, descriptors)
	f.Add(nvmeLog(4, 9), limits, fixed)
	for _, b := range sasPages(0x5d, 0) {
		f.Add(b, b, descriptors[:9])
	}
	f.Fuzz(func(t *testing.T, first, second, sense []byte) {
		told := func(h Health) {
			if h.Failing != "" && !h.Told {
				t.Errorf("a verdict that was not told: %+v", h)
			}
			if len(h.Errors) > 30 {
				t.Errorf("%d counters", len(h.Errors))
			}
		}
		told(parseNVMe("nvme0n1", first))
		for _, v := range []verdict{silent, well, failing} {
			told(judgeATA("sda", parseATA(first, second), v))
		}
		harmless(sense)
		for _, vendor := range []string{"ATA     ", "MAKER   "} {
			h, err := askSCSI("sda", func(cdb, in []byte) ([]byte, error) {
				switch {
				case cdb[0] == 0x12:
					copy(in[8:], vendor)
				case cdb[4] == ataData || cdb[2] == 1<<6:
					copy(in, first)
				default:
					copy(in, second)
				}
				return sense, nil
			})
			if err != nil {
				t.Error(err)
			}
			told(h)
		}
	})
}
