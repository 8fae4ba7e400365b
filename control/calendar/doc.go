// Package calendar is the time of a pool: when each machine is taken, and when a request
// could start. It is pure.
//
// A Timetable holds, for each machine, the times at which it is not to be had: the cluster
// that has it, promises, requests ahead in the queue, maintenance. Earliest finds the first
// moment at which machines that fit are free together for as long as a request needs them,
// and names them; Take enters them. Whoever enters what binds before what does not, and the
// queue in its order, has the rules of the calendar:
//
//   - nothing that is entered is ever in the way of what was entered before;
//   - a request that comes later is only ever put where room is left (conservative
//     backfilling: Mu'alem and Feitelson, IEEE TPDS 12(6), 2001);
//   - two tenants of a machine lie apart by the time that it takes to end jobs, clean,
//     boot and check.
package calendar
