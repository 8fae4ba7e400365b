// Package series keeps what was measured over time: what nodes use, the queue
// and jobs of clusters, how many hosts are up, and the site's totals.
//
// It is one SQLite file of its own, bounded in age and in size, which holds
// nothing that the control plane needs: a file that is damaged or not ours is
// set aside, and samples that cannot be written are dropped and counted.
// Whoever brings a sample never waits for the disk.
//
// Samples of the same ten seconds are averaged in memory. What is written is
// one block for each owner (a cluster, or the site) and time: a table of all
// its entries, packed by column. Blocks are only ever added: a coarser block
// is made from the finer ones that no coarser block holds yet, and they are
// marked as rolled in the same transaction. So nothing is counted twice or lost
// by a crash, by late samples, or by a clock that jumps.
//
// Means are weighted by the seconds that a sample covers, so that mean times
// time is the true sum whatever the intervals were.
package series
