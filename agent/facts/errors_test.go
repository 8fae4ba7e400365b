package facts

import (
	"reflect"
	"testing"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"sys/devices/system/edac/mc/mc0/ue_count": "1\n", "sys/devices/system/edac/mc/mc0/ce_count": "17\n", "sys/devices/system/edac/mc/power/x": "",
		"sys/bus/pci/devices/0000:03:00.0/aer_dev_fatal":       "Undefined 0\nDLP 0\nTOTAL_ERR_FATAL 2\n",
		"sys/bus/pci/devices/0000:03:00.0/aer_dev_correctable": "RxErr 5\nTOTAL_ERR_COR 5\n",
		"sys/bus/pci/devices/0000:04:00.0/class":               "0x030200\n",
		"sys/block/sda/device/ioerr_cnt":                       "0x1f\n", "sys/block/vda/size": "8\n",
		"sys/class/net/eno1/device/x": "", "sys/class/net/eno1/statistics/rx_crc_errors": "3\n", "sys/class/net/lo/statistics/rx_crc_errors": "9\n",
	})
	want := []Errors{
		{"memory of mc0, not corrected", 1, true}, {"memory of mc0, corrected", 17, false},
		{"PCIe 0000:03:00.0, fatal", 2, true}, {"PCIe 0000:03:00.0, correctable", 5, false},
		{"disk sda, failed commands", 31, true}, {"network eno1, bad frames", 3, false},
	}
	if got := (Source{Root: root}).Errors(); !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
	if got := (Source{Root: t.TempDir()}).Errors(); len(got) != 0 {
		t.Errorf("a machine without counters has %+v", got)
	}
}
