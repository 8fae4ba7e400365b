package initramfs

import "strings"

// Wanted reports whether a module belongs into the archive for its own sake, by its
// path below lib/modules/RELEASE. What such modules need comes with them.
func Wanted(file string) bool {
	p, ok := strings.CutPrefix(file, "kernel/")
	if !ok {
		return false
	}
	for _, dir := range unwanted() {
		if strings.HasPrefix(p, dir) {
			return false
		}
	}
	for _, dir := range kinds() {
		if strings.HasPrefix(p, dir) {
			return true
		}
	}
	return false
}

// kinds are folders (ending in a slash) and modules that are wanted.
func kinds() []string {
	const eth = "drivers/net/ethernet/"
	return []string{
		// The root file system: squashfs on a loop device, an overlay above.
		"fs/squashfs/", "fs/overlayfs/", "drivers/block/loop.ko",
		// Network cards, by maker, as servers have them.
		eth + "alacritech/", eth + "amazon/", eth + "amd/xgbe/", eth + "aquantia/", eth + "broadcom/",
		eth + "chelsio/cxgb4/", eth + "cisco/", eth + "emulex/", eth + "google/",
		eth + "huawei/", eth + "intel/", eth + "marvell/", eth + "mellanox/", eth + "meta/", eth + "microsoft/",
		eth + "pensando/", eth + "qlogic/", eth + "realtek/", eth + "sfc/", eth + "wangxun/",
		"drivers/net/phy/", "drivers/net/mdio/",
		// InfiniBand, and IP over it.
		"drivers/infiniband/hw/mlx4/", "drivers/infiniband/hw/mlx5/", "drivers/infiniband/hw/hfi1/", "drivers/infiniband/hw/qib/",
		"drivers/infiniband/ulp/ipoib/",
		// Of virtual machines.
		"drivers/virtio/", "drivers/net/virtio_net.ko", "drivers/net/net_failover.ko", "drivers/net/vmxnet3/",
		"drivers/net/hyperv/", "drivers/net/xen-netfront.ko", "drivers/hv/hv_vmbus.ko", "drivers/hv/hv_utils.ko",
		"drivers/char/hw_random/virtio-rng.ko",
		// Disks: to be looked at, tested and erased.
		"drivers/nvme/host/nvme.ko", "drivers/nvme/host/nvme-core.ko", "drivers/ata/ahci.ko", "drivers/ata/ata_piix.ko",
		"drivers/block/virtio_blk.ko", "drivers/block/xen-blkfront.ko", "drivers/scsi/virtio_scsi.ko",
		"drivers/scsi/sd_mod.ko", "drivers/scsi/mpt3sas/", "drivers/scsi/mpi3mr/", "drivers/scsi/megaraid/megaraid_sas.ko",
		"drivers/scsi/smartpqi/", "drivers/scsi/hpsa.ko", "drivers/scsi/aacraid/", "drivers/scsi/hv_storvsc.ko",
		"drivers/scsi/vmw_pvscsi.ko",
		// An encrypted part of a disk, from which a machine that hibernates goes on.
		"drivers/md/dm-mod.ko", "drivers/md/dm-crypt.ko", "crypto/xts.ko", "crypto/ecb.ko", "crypto/aes_generic.ko", "arch/x86/crypto/aesni-intel.ko",
		// TPMs and management controllers.
		"drivers/char/tpm/", "drivers/char/ipmi/",
	}
}

// unwanted are exceptions from the kinds: switches, what no server was sold with in
// the last ten years, and cards that do nothing before they are given a firmware
// from a file: the archive holds none.
func unwanted() []string {
	const eth = "drivers/net/ethernet/"
	return []string{
		eth + "mellanox/mlxsw/", eth + "marvell/prestera/",
		eth + "intel/e100.ko", eth + "marvell/sky2.ko", eth + "marvell/skge.ko", eth + "qlogic/netxen/",
		eth + "qlogic/qla3xxx.ko", eth + "qlogic/qlcnic/", eth + "realtek/8139", eth + "realtek/atp.ko",
		eth + "sfc/falcon/", eth + "sfc/siena/", eth + "broadcom/b44.ko",
		eth + "broadcom/bnx2.ko", eth + "broadcom/bnx2x/", eth + "broadcom/cnic.ko", eth + "qlogic/qed/", eth + "qlogic/qede/",
	}
}
