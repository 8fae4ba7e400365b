// Package smart asks disks what they know of their own health: NVMe by its log page
// of health, SATA by SMART, SAS by its log pages. Only questions are asked; nothing of
// a disk is changed.
//
// A count is of what was lost, or of what was mended on the way ([facts.Errors]). Lost
// is what the disk could not give back as it was written: media errors of NVMe, pending
// and uncorrectable sectors of SATA, uncorrected errors of SAS. Mended is what cost time
// only: a sector that was replaced, a frame that was sent again. What disks mend all the
// time, such as bits that their own codes correct, is not counted.
package smart
