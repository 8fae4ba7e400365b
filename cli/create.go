package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// maxRequest is more than any request file has.
const maxRequest = 1 << 20

// createFlags are the flags of create.
type createFlags struct {
	lift         bool
	reason       string
	file, format string
	dryRun, wait bool
	noQueue      bool
	from         string
	timeout      time.Duration
	request      wire.Request
}

func (a *app) create() *cobra.Command {
	var f createFlags
	c := &cobra.Command{
		Use: "create (NAME -n N | NAME --from TEMPLATE | NAME --like CLUSTER | -f FILE)", Short: "Create a cluster", Args: atMost(1),
		Long: `Creates a cluster from flags or from a request file in YAML, JSON or XML ("-f -" reads
standard input). The answer is "now" with the chosen machines, "queued" with the
position and the time at which it should start, or "never" with the number of machines
ruled out by each reason, and what to change.

With --start the answer is "reserved": a promise, which no later request moves. A time that
cannot be promised is refused with the nearest one that can. --start earliest takes that.
Changes that would bring an earlier start are named with their own times.

With --dry-run the exit status is the one that the request would have without it: 0 for
"now", "queued" and "reserved", 6 for "never", for a time that cannot be promised, and
for "queued" with --no-queue.

Use either flags or a file: only --format, --dry-run, --wait and --timeout can be
combined with -f.

With --wait it shows the progress, stage by stage, until the cluster is ready. Ctrl-C
detaches; the cluster keeps building.`,
		Example: `  muster create cfd -n 4 --wait
  muster create cfd -n 8 --image hpc --cores ">=16" --memory ">=64GiB" --walltime 8h
  muster create old -n 4 --image hpc@2026-06
  muster create lab -n 1 --image raw --head shared --users alice,bob
  muster create cfd -n 8 --walltime 8h --start "2026-12-01 10:00 Europe/Berlin"
  muster create cfd -n 8 --walltime 2d --start earliest
  muster create cfd2 --like cfd --within leaf
  muster create spread -n 4 --shape-cores 2 --shape-sockets 1 --memory-per-core 4GiB --link-rate 1Gb/s
  muster create v -n 2 --provider vm --wait
  muster create -f request.yaml --dry-run
  generate-request | muster create -f - --wait -o json`,
		RunE: func(c *cobra.Command, args []string) error { return a.runCreate(c, args, &f) },
	}
	r, flags := &f.request, c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "request file; - is standard input")
	flags.StringVar(&f.format, "format", "", "format of the request: yaml, json, xml (default: detected)")
	flags.IntVarP(&r.Nodes, "nodes", "n", 0, "number of compute nodes")
	flags.IntVar(&r.Min, "min", 0, "minimum number of compute nodes")
	flags.StringVar(&r.Image, "image", "", "image (default hpc); hpc@2026-11-20: its newest content of that day or before")
	flags.StringVar(&r.Head, "head", "", "separate: a machine of its own; shared: the first compute node")
	flags.IntVar(&r.Logins, "login-nodes", 0, "number of login nodes besides the head; they run no jobs")
	flags.StringVar(&r.Machine.Cores, "cores", "", `cores of each machine: ">=16"`)
	flags.StringVar(&r.Machine.Memory, "memory", "", `memory of each machine: ">=64GiB"`)
	flags.StringVar(&r.Machine.Disk, "disk", "", `scratch disk of each machine: ">=100GiB"`)
	flags.StringVar(&r.Machine.Class, "class", "", "machine class")
	flags.StringVar(&r.Machine.Rack, "rack", "", "rack")
	flags.StringVar(&r.Machine.Provider, "provider", "", "where the machines come from: metal (bare metal), local (slices of a host), vm (virtual machines), fake (simulated)")
	flags.StringVar(&r.Machine.Processor, "processor", "", `processor model: "EPYC*"`)
	flags.StringVar(&r.Machine.Architecture, "architecture", "", "amd64 or arm64")
	flags.StringVar(&r.Machine.NICs, "nics", "", `number of message interfaces: ">=2"`)
	flags.StringVar(&r.Machine.NICSpeed, "nic-speed", "", `speed of message interfaces: ">=10Gb/s"`)
	flags.StringVar(&r.Machine.NICKind, "nic-kind", "", "kind of message interfaces: ethernet, infiniband, veth")
	flags.StringVar(&r.Machine.Accelerators, "accelerators", "", `number of accelerators: ">=1"`)
	flags.StringVar(&r.Machine.Accelerator, "accelerator", "", "accelerator model")
	flags.IntVar(&r.Shape.Cores, "shape-cores", 0, "cores of each compute node that are online (default: all)")
	flags.IntVar(&r.Shape.Sockets, "shape-sockets", 0, "with --shape-cores: sockets that they come from")
	flags.StringVar(&r.Shape.MemoryPerCore, "memory-per-core", "", "with --shape-cores: memory for each of them: 4GiB")
	flags.StringArrayVar(&r.Shape.KernelArgs, "kernel-arg", nil, "added to the kernel's command line on machines with kernels of their own; repeatable")
	flags.StringVar(&r.Shape.NUMA, "numa", "", "whether programs see the memory nodes: shown or hidden")
	flags.StringVar(&r.VM.Tune, "vm-tune", "", "with --provider vm: on (the default): pinned, in memory of its cores, built as its host is; off: as QEMU has it by itself")
	flags.StringVar(&r.VM.NIC, "vm-nic", "", "with --provider vm: virtio (the default), or vf: a virtual function of a network card")
	flags.StringVar(&r.VM.Pages, "vm-pages", "", "with --provider vm: size of huge pages, 2MiB or 1GiB (default: ordinary pages)")
	flags.StringVar(&r.VM.Emulate, "vm-emulate", "", "with --provider vm: on (the default): emulated where the host has no KVM; off: such hosts are not taken")
	flags.StringVar(&r.LinkRate, "link-rate", "", "what each node's links for messages are held to: 1Gb/s")
	flags.BoolVar(&r.Mixed, "mixed", false, "allow nodes of different machine classes")
	flags.StringSliceVar(&r.Packages, "packages", nil, "extra Debian packages for the image")
	flags.StringVar(&r.Placement, "placement", "", "pack, spread or any")
	flags.StringVar(&r.Within, "within", "", "keep all nodes in one: chassis, rack, leaf, spine, room or site (the default); any-site: they may be in several data centres")
	flags.StringVar(&r.Like, "like", "", "cluster to be like: what is not given of nodes, head, logins, machines, shape, link rate, image, scheduler and placement is as it had it")
	flags.StringVar(&r.Walltime, "walltime", "", "time limit, counted from when the cluster is ready: 8h, 2d")
	flags.StringVar(&r.Start.At, "start", "", `when people can log in, as a promise: +2h, earliest, RFC 3339, "2026-12-01 10:00 Europe/Berlin" (default: as soon as there is room)`)
	flags.StringVar(&r.Priority, "priority", "", "scavenger: take what nobody else wants, and end with grace when somebody does")
	flags.StringVar(&r.Validate, "validate", "", "how much to measure before the cluster is handed over: quick, full or off")
	flags.StringVar(&r.IfSlow, "on-slow", "", "what to do with a cluster that is still slow after slow machines were replaced: deliver (the default) or refuse")
	flags.StringVar(&r.OnPause, "on-pause", "", "what to do with running jobs when it is paused: wait (the default; also: stop), requeue, freeze, save or hibernate")
	flags.StringVar(&r.Egress, "egress", "", "outgoing traffic: none, proxy or nat")
	flags.StringSliceVar(&r.Users, "users", nil, "who may log in (default: you; for root who called sudo, else muster)")
	flags.StringSliceVar(&r.Doors, "doors", nil, "doors of the SSH gateway that are open: straight, jump, plain; or none (default: all that the site and the project allow)")
	flags.StringVar(&r.Home, "home", "", "home volume of an earlier cluster (default: a new one)")
	flags.StringVar(&r.HomeQuota, "home-quota", "", "size limit of a new home, if the server's file system supports quotas: 100GiB")
	flags.StringVar(&r.Retain, "retain", "", "how long to keep the home after the cluster is deleted: 7d; 0: delete it at once")
	flags.StringSliceVar(&r.Volumes, "volume", nil, "volume to mount: NAME, NAME:/PATH or NAME:/PATH:ro; repeatable")
	flags.StringVar(&r.Scheduler, "scheduler", "", "slurm or none")
	flags.StringVar(&r.Project, "project", "", "owning project")
	flags.StringVar(&f.from, "from", "", "template to begin with: NAME, or PROJECT/NAME; other flags change it")
	flags.BoolVar(&f.noQueue, "no-queue", false, "fail instead of queueing if there is no capacity now")
	flags.BoolVar(&f.lift, "lift-limits", false, "limits of the project do not hold for it: for administrators, and for managers those of each user")
	flags.StringVar(&f.reason, "reason", "", "with --lift-limits: the reason, for everybody to see")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the answer and the plan without creating anything")
	flags.BoolVar(&f.wait, "wait", false, "wait until the cluster is ready")
	duration.Var(flags, &f.timeout, "timeout", 0, "with --wait: give up waiting after this long")
	fixed := func(name string, words ...string) {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = c.RegisterFlagCompletionFunc("like", a.completeClusters(-1))
	fixed("start", "now", "earliest", "+1h")
	fixed("priority", "scavenger")
	fixed("on-pause", "wait", "requeue", "freeze", "save", "hibernate")
	fixed("vm-tune", "on", "off")
	fixed("vm-nic", muster.VMNICVirtio, muster.VMNICFunction)
	fixed("vm-pages", muster.VMPages2MiB, muster.VMPages1GiB)
	fixed("vm-emulate", "on", "off")
	fixed("numa", "shown", "hidden")
	fixed("link-rate", "100Mb/s", "1Gb/s", "10Gb/s")
	fixed("head", "separate", "shared")
	fixed("placement", "pack", "spread", "any")
	fixed("validate", "quick", "full", "off")
	fixed("egress", "none", "proxy", "nat")
	fixed("scheduler", "slurm", "none")
	fixed("within", muster.Within()...)
	fixed("format", "yaml", "json", "xml")
	fixed("architecture", "amd64", "arm64")
	fixed("nic-kind", "ethernet", "infiniband", "veth")
	for name, word := range map[string]func(wire.Machine) string{
		"class":     func(m wire.Machine) string { return m.Facts.Class },
		"rack":      func(m wire.Machine) string { return m.Facts.Rack },
		"processor": func(m wire.Machine) string { return m.Facts.Processor },
	} {
		_ = c.RegisterFlagCompletionFunc(name, a.completeFacts(word))
	}
	_ = c.RegisterFlagCompletionFunc("provider", a.completeFacts(func(m wire.Machine) string { return m.Provider }, muster.ProviderVM))
	_ = c.RegisterFlagCompletionFunc("image", a.completeImages)
	_ = c.RegisterFlagCompletionFunc("home", a.completeVolumes(-1, func(v wire.Volume) bool {
		return v.Kind == muster.VolumeHome && v.Status == muster.VolumeRetained
	}))
	_ = c.RegisterFlagCompletionFunc("volume", a.completeVolumes(-1, func(v wire.Volume) bool { return v.Kind == muster.VolumeData }))
	return c
}

func (a *app) runCreate(c *cobra.Command, args []string, f *createFlags) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	if err := needsWait(c, f.wait); err != nil {
		return err
	}
	call, err := a.createCall(c, args, f)
	if err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	created, err := k.CreateCluster(c.Context(), call)
	if err != nil {
		if interrupted(c.Context(), err) {
			fmt.Fprintln(a.env.Err, "\ninterrupted before the answer came; whether the cluster was made is in 'muster list'")
		}
		if f.file == "" {
			err = withoutPlaces(err)
		}
		if a.output != "" && created.Status == "never" {
			_ = a.print(created, func(io.Writer) {})
		}
		return err
	}
	people := a.output == ""
	if people {
		a.writeCreated(a.env.Out, created)
		if !f.wait && !created.DryRun {
			fmt.Fprintf(a.env.Out, "follow it:    muster events -f %s    muster show %s\n", clean(created.Name), clean(created.Name))
		}
	}
	if f.wait && !created.DryRun {
		w := &watcher{app: a, client: k, id: created.ID, name: created.Name, show: people, timeout: f.timeout, goal: muster.ClusterReady, created: created.Cluster}
		cluster, err := w.run(c.Context())
		if cluster != nil {
			created.Cluster, created.Status = cluster, string(cluster.Status)
		}
		if err != nil {
			if !people && cluster != nil {
				_ = a.print(created, func(io.Writer) {})
			}
			return err
		}
		if people {
			a.writeReady(a.env.Out, created)
		}
	}
	if !people {
		if err := a.print(created, func(io.Writer) {}); err != nil {
			return err
		}
	}
	if created.DryRun && refuses(created) {
		return &StatusError{Status: exitNoCapacity}
	}
	return nil
}

// refuses reports whether the request would be refused with that answer.
func refuses(c wire.Created) bool {
	switch c.Answer.Verdict {
	case muster.VerdictNever, muster.VerdictLater:
		return true
	case muster.VerdictQueued:
		return !c.Spec.Queue
	}
	return false
}

// withoutPlaces leaves out where problems stand in a text that no person wrote.
func withoutPlaces(err error) error {
	var e *muster.Error
	if errors.As(err, &e) {
		for i := range e.Problems {
			e.Problems[i].Place = ""
		}
	}
	return err
}

// createCall makes the body: the file as it is, or a request from the flags.
func (a *app) createCall(c *cobra.Command, args []string, f *createFlags) (client.Create, error) {
	call := client.Create{DryRun: f.dryRun, DefaultUser: a.person(), LiftLimits: f.lift, Reason: f.reason}
	if f.reason != "" && !f.lift {
		return call, usage(c, "--reason needs --lift-limits")
	}
	if f.format != "" && f.format != "yaml" && f.format != "json" && f.format != "xml" {
		return call, usage(c, "there is no request format %q", f.format)
	}
	if f.file == "" && f.format != "" {
		return call, usage(c, "--format needs a request file: use --file")
	}
	if f.file != "" {
		if len(args) > 0 {
			return call, usage(c, "the name stands in the request file, not beside it")
		}
		if bad := mixed(c); bad != "" {
			return call, usage(c, "--%s and --file cannot be mixed: write it into the file", bad)
		}
		var err error
		call.Body, err = a.readUpTo(f.file, maxRequest, "a request")
		if err == nil && len(bytes.TrimSpace(call.Body)) == 0 {
			err = muster.Errorf(muster.EInvalid, "the request is empty").Because(muster.ReasonRequired).WithHint("a request holds at least name and nodes")
		}
		call.Format = first(f.format, formatOf(f.file))
		return call, err
	}
	if len(args) == 0 {
		return call, usage(c, "NAME is missing")
	}
	if !c.Flags().Changed("nodes") && f.from == "" && f.request.Like == "" {
		return call, usage(c, "the number of nodes is missing: -n N")
	}
	f.request.Name = args[0]
	if f.from != "" {
		var err error
		if f.request, err = a.fromTemplate(c, f.from, f.request); err != nil {
			return call, err
		}
	}
	if f.noQueue {
		no := false
		f.request.Queue = &no
	}
	var err error
	call.Format = "json"
	call.Body, err = json.Marshal(f.request)
	return call, err
}

// mixed names a flag that says part of a request which also stands in a file.
func mixed(c *cobra.Command) string {
	own := map[string]bool{"file": true, "format": true, "dry-run": true, "wait": true, "timeout": true, "lift-limits": true, "reason": true}
	found := ""
	c.LocalNonPersistentFlags().VisitAll(func(flag *flagType) {
		if flag.Changed && !own[flag.Name] && found == "" {
			found = flag.Name
		}
	})
	return found
}

func formatOf(file string) string {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml":
		return "yaml"
	case ".json":
		return "json"
	case ".xml":
		return "xml"
	}
	return ""
}

// person is who types: the one behind sudo.
func (a *app) person() string {
	if name := a.env.getenv("SUDO_USER"); name != "" && name != "root" {
		return name
	}
	if os.Geteuid() == 0 {
		return ""
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (a *app) writeCreated(w io.Writer, c wire.Created) {
	if c.DryRun {
		fmt.Fprintf(w, "cluster %s: %s (dry run, nothing is made)\n", clean(c.Name), c.Answer.Verdict)
	} else {
		fmt.Fprintf(w, "cluster %s  %s  %s\n", clean(c.Name), c.ID, c.Status)
	}
	if c.DryRun || c.Answer.Verdict != muster.VerdictNow {
		writeAsked(w, c.Spec)
	}
	writeConsidered(w, c.Answer)
	if p := c.Answer.Plan; p != nil {
		fmt.Fprintf(w, "  chosen      %s\n", clean(planText(*p)))
		writeDistance(w, p.Distance)
	}
	if c.Answer.Position > 0 {
		fmt.Fprintf(w, "  queued      position %d; it starts by itself\n", c.Answer.Position)
	}
	writeStart(w, c.Answer)
	for _, n := range c.Answer.Notices {
		fmt.Fprintf(w, "  note        %s\n", clean(n))
	}
	if c.Cluster != nil && !c.Cluster.ETA.IsZero() && c.Status == string(muster.ClusterBuilding) {
		fmt.Fprintf(w, "  expected    ready in about %s\n", age(max(time.Second, time.Until(c.Cluster.ETA).Round(time.Second))))
	}
	if c.DryRun && c.Answer.Verdict != muster.VerdictNow {
		for _, change := range c.Answer.Change {
			fmt.Fprintf(w, "  change      %s\n", clean(change))
		}
	}
}

// writeStart says when it starts, and what would start earlier.
func writeStart(w io.Writer, answer muster.Answer) {
	at := answer.StartAt
	switch {
	case answer.Verdict == muster.VerdictReserved:
		fmt.Fprintf(w, "  promised    people can log in at %s, %s\n", moment(at), fromNow(at))
	case answer.Verdict == muster.VerdictLater && !at.IsZero():
		fmt.Fprintf(w, "  nearest     %s, %s\n", moment(at), fromNow(at))
	case answer.Verdict == muster.VerdictQueued && at.IsZero():
		fmt.Fprintln(w, "  expected    no time is known: clusters without an end have the machines")
	case answer.Verdict == muster.VerdictQueued:
		text := ""
		if answer.StartSpread > 0 {
			text = "; such times were off by " + age(time.Duration(answer.StartSpread)) + " lately"
		}
		fmt.Fprintf(w, "  expected    it starts at %s, %s%s\n", moment(at), fromNow(at), text)
	}
	for _, alt := range answer.Alternatives {
		fmt.Fprintf(w, "  if          %s: it starts at %s, %s\n", clean(alt.Text), moment(alt.StartAt), fromNow(alt.StartAt))
	}
}

// moment writes a time to the second.
func moment(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05 MST") }

// fromNow says how far away a time is.
func fromNow(at time.Time) string {
	if left := time.Until(at).Round(time.Second); left > 0 {
		return "in " + age(left)
	}
	return "now"
}

// writeAsked says how many machines a cluster takes that are more than its nodes.
func writeAsked(w io.Writer, s muster.Spec) {
	if s.TotalNodes() <= s.Nodes {
		return
	}
	parts := []string{plaintext.Count(s.Nodes, "node")}
	if s.Head == muster.HeadSeparate {
		parts = append(parts, "one for its head")
	}
	if s.Logins > 0 {
		parts = append(parts, plaintext.Count(s.Logins, "login node"))
	}
	fmt.Fprintf(w, "  asked       %s: %s\n", plaintext.Count(s.TotalNodes(), "machine"), strings.Join(parts, ", "))
}

// writeConsidered reports what admission looked at.
func writeConsidered(w io.Writer, answer muster.Answer) {
	total := answer.Free // every machine is free or under one reason
	for _, r := range answer.Rejections {
		total += r.Count
	}
	if total == 0 && len(answer.Rejections) == 0 {
		return
	}
	fmt.Fprintf(w, "  considered  %s: %d fit, %d of them free\n", plaintext.Count(total, "machine"), answer.Fits, answer.Free)
	for _, r := range answer.Rejections {
		fmt.Fprintf(w, "  not         %s: %s\n", plaintext.Count(r.Count, "machine"), clean(r.Text))
	}
}

func planText(p muster.Plan) string {
	ids := make([]string, 0, len(p.Assign))
	for _, as := range p.Assign {
		ids = append(ids, string(as.Machine))
	}
	list := strings.Join(ids, " ")
	if len(ids) > 8 {
		list = strings.Join(ids[:8], " ") + fmt.Sprintf(" and %d more", len(ids)-8)
	}
	class := ""
	if p.Class != "" {
		class = " of class " + p.Class
	}
	return fmt.Sprintf("%s%s in %s: %s", plaintext.Count(len(ids), "machine"), class, plaintext.Count(p.Racks, "rack"), list)
}

// writeDistance says how far nodes are from each other, and what they share.
func writeDistance(w io.Writer, d *muster.PlanDistance) {
	if d == nil {
		return
	}
	text := "1 switch between any two nodes"
	if d.Switches > 1 {
		text = fmt.Sprintf("at most %d switches between two nodes, %.1f on average", d.Switches, d.Mean)
	}
	if d.Unknown > 0 {
		text += fmt.Sprintf("; the capacity of %s is not known", plaintext.Count(d.Unknown, "uplink"))
	}
	fmt.Fprintf(w, "  distance    %s\n", text)
	for _, u := range d.Uplinks {
		fmt.Fprintf(w, "  shared      uplink of %s: %s for %s, %s each\n", clean(u.Stand), topology.Rate(u.Capacity), plaintext.Count(u.Nodes, "node"), rateOf(u.Share))
	}
}

// rateOf is a rate for people, rounded.
func rateOf(bps int64) string {
	switch {
	case bps >= 1e9:
		return fmt.Sprintf("%.3gGb/s", float64(bps)/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.3gMb/s", float64(bps)/1e6)
	}
	return topology.Rate(bps)
}

// stagesText reports when the slowest node reached each stage of its boot, in
// seconds after the request.
func stagesText(c *wire.Cluster) string {
	if c == nil {
		return ""
	}
	var order []string
	slowest := map[string]float64{}
	for _, n := range c.Nodes {
		for _, s := range n.Stages {
			at, known := slowest[s.Name]
			if !known {
				order = append(order, s.Name)
			}
			slowest[s.Name] = max(at, s.At.Sub(c.Created).Seconds())
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return slowest[order[i]] < slowest[order[j]] })
	parts := make([]string, len(order))
	for i, name := range order {
		parts[i] = fmt.Sprintf("%s %.2fs", name, slowest[name])
	}
	return strings.Join(parts, ", ")
}

// writeReady reports how to use the cluster now.
func (a *app) writeReady(w io.Writer, c wire.Created) {
	name := clean(c.Name)
	if text := stagesText(c.Cluster); text != "" {
		fmt.Fprintf(w, "stages:       %s\n", clean(text))
	}
	if c.Cluster != nil {
		for _, v := range c.Cluster.Volumes {
			if v.Quota > 0 && !v.Enforced && v.Kind == muster.VolumeHome {
				fmt.Fprintf(w, "note:         the size of %s, %s, is not enforced: the server's file system keeps no project quotas\n", clean(v.Target), size(v.Quota))
			}
		}
	}
	fmt.Fprintf(w, "use it:       muster ssh %s    muster exec %s -- COMMAND\n", name, name)
	fmt.Fprintf(w, "give it back: muster delete %s\n", name)
}
