//go:build linux

// Command load measures what a request costs hakaru's load engine beside wrk, ab,
// h2load, hey, bombardier, vegeta and k6, and beside a bare write and read loop in
// Go, all against one nginx worker; how late hakaru itself sends at a fixed rate;
// and whether its latencies are true where a server stalls.
//
//	make bench-load       # or: go run ./bench/load -hakaru bin/hakaru -lag -truth
//
// It says what it does on standard output, writes every run to a TSV (-raw; the file
// of before is kept beside it) and draws the Markdown report (-out), after an interruption too; -from draws the
// report again from a TSV. docs/bench-load.md keeps one. Programs that are not
// there are told of in it; bombardier and vegeta are built at the first use.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"hakaru/internal/stats"
	"hakaru/internal/unit"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	hakaru, tools, out, raw, from string
	only, scenarios               string
	rounds, others                int
	run                           time.Duration
	seed                          uint64
	serverCPU, clientCPU          int
	ordinary, lag, truth          bool
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] { // this program as a child of itself
		case floorName:
			return floor(args[1:])
		case "stall":
			return stall(os.Stdin, os.Stdout)
		}
	}
	var s settings
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&s.hakaru, "hakaru", "bin/hakaru", "the program")
	flags.StringVar(&s.tools, "tools", "", "directory of built programs (default: in the user's cache)")
	flags.StringVar(&s.out, "out", "", "file for the Markdown report")
	flags.StringVar(&s.raw, "raw", "", "file for all runs, as TSV")
	flags.StringVar(&s.from, "from", "", "draw the report from such a file and measure nothing")
	flags.StringVar(&s.only, "only", "", "programs beside hakaru, by name, separated by commas (default: all)")
	flags.StringVar(&s.scenarios, "scenarios", "", "scenarios, by name, separated by commas (default: all)")
	flags.IntVar(&s.rounds, "rounds", 31, "rounds of hakaru, floor and wrk; 0: none")
	flags.IntVar(&s.others, "others", 9, "in how many of them the others take part")
	flags.DurationVar(&s.run, "run", time.Second, "length of one run (not below a second for wrk, ab and bombardier)")
	flags.Uint64Var(&s.seed, "seed", 1, "of the order")
	flags.IntVar(&s.serverCPU, "server-cpu", 0, "where nginx runs on two CPUs")
	flags.IntVar(&s.clientCPU, "client-cpu", 1, "where the client runs, and nginx too on the same CPU")
	flags.BoolVar(&s.ordinary, "ordinary", false, "do not enter the real-time class")
	flags.BoolVar(&s.lag, "lag", false, "measure how late hakaru sends at a fixed rate")
	flags.BoolVar(&s.truth, "truth", false, "measure latencies of a server that stalls")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if s.from != "" {
		f, err := os.Open(s.from)
		if err != nil {
			return err
		}
		defer f.Close()
		res, err := readRaw(f)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.from, err)
		}
		return draw(res, s.out)
	}
	return measure(ctx, s, args)
}

// draw writes the report to a file, or to standard output.
func draw(res *results, out string) error {
	if out == "" {
		return res.write(os.Stdout)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(res.write(f), f.Close())
}

// bench is what is up while it measures.
type bench struct {
	settings
	launcher *launcher
	server   *server
	clients  []*client
	lengths  map[string]int // of answers, by path
	raw      io.Writer
	res      *results
	dir      string
}

func measure(ctx context.Context, s settings, args []string) (err error) {
	b := &bench{settings: s, res: &results{}, raw: io.Discard, lengths: map[string]int{}}
	if b.dir, err = os.MkdirTemp("", "hakaru-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := os.WriteFile(filepath.Join(b.dir, k6FileName), []byte(k6Script), 0o600); err != nil {
		return err
	}
	if s.raw != "" {
		// Hours of runs are not to be lost by a second start.
		if err := os.Rename(s.raw, s.raw+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		f, err := os.Create(s.raw)
		if err != nil {
			return err
		}
		defer f.Close()
		b.raw = f
	}
	if err := b.find(ctx); err != nil {
		return err
	}
	var refused error
	if b.launcher, refused, err = newLauncher(ctx, !s.ordinary); err != nil {
		return err
	}
	for _, cpu := range []int{s.serverCPU, s.clientCPU} {
		if !b.launcher.cpus.IsSet(cpu) {
			return fmt.Errorf("CPU %d is not one that this process may use: see -server-cpu and -client-cpu", cpu)
		}
	}
	class := b.launcher.class()
	if refused != nil {
		class += fmt.Sprintf(" (real time: %v; other programs of the machine disturb)", refused)
	}
	if err := b.facts(args, class); err != nil {
		return err
	}
	if b.server, err = startServer(ctx, b.launcher, b.dir, s.serverCPU); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.stop()) }()

	all := cells(func(sc scenario) bool { return chosen(s.scenarios, sc.name) })
	fmt.Printf("about %v\n", b.estimate(all).Round(time.Second))
	err = b.all(ctx, all)
	if len(b.res.rows)+len(b.res.opens) == 0 {
		return err
	}
	return errors.Join(err, b.finish())
}

// all measures everything; what there is when it ends early is in b.res.
func (b *bench) all(ctx context.Context, all []cell) error {
	if err := b.compare(ctx, all); err != nil {
		return err
	}
	if err := b.server.moveTo(b.serverCPU); err != nil {
		return err
	}
	if b.lag {
		if err := b.sendLag(ctx); err != nil {
			return err
		}
	}
	if b.truth {
		return b.stalls(ctx)
	}
	return nil
}

func (b *bench) finish() error {
	b.res.judged(func(g goal, where cell, seen, verdict string) {
		fmt.Printf("%-10s to %-10s %v: %s: %s\n", where, g.peer, g, seen, strings.ReplaceAll(verdict, "*", ""))
	})
	return draw(b.res, b.out)
}

func chosen(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// find looks for the programs; those chosen and missing become facts.
func (b *bench) find(ctx context.Context) (err error) {
	if b.tools == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		b.tools = filepath.Join(cache, "hakaru", "bench-load")
	}
	if b.tools, err = filepath.Abs(b.tools); err != nil {
		return err
	}
	for _, c := range clients(b.dir) {
		if c.name == subject {
			if c.path, err = filepath.Abs(b.hakaru); err != nil {
				return err
			}
			if !executable(c.path) {
				return fmt.Errorf("%s is no program: build it, or name it with -hakaru", b.hakaru)
			}
			if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
				c.found = "commit " + strings.TrimSpace(string(out))
			}
		} else if !chosen(b.only, c.name) {
			continue
		} else if err := c.find(ctx, b.tools); err != nil {
			return err
		}
		b.clients = append(b.clients, c)
	}
	return nil
}

// facts are what the figures depend on.
func (b *bench) facts(args []string, class string) error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	model := "not known"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	nginx := &client{name: "nginx", path: "nginx", version: []string{"-v"}}
	all := []fact{
		{"command", strings.Join(append([]string{"go run ./bench/load"}, args...), " ")},
		{"CPU", fmt.Sprintf("%s, %d", model, b.launcher.cpus.Count())},
		{"kernel", "Linux " + unix.ByteSliceToString(name.Release[:])},
		{"class", class},
		{"nginx", nginx.versionOf(context.Background())},
		{"Go", runtime.Version()},
	}
	for _, c := range b.clients {
		if c.missing != "" {
			all = append(all, fact{c.name, "missing: " + c.missing})
			fmt.Printf("%s is missing: %s\n", c.name, c.missing)
		} else if c.found != "" {
			all = append(all, fact{c.name, c.found})
		}
	}
	b.clients = slices.DeleteFunc(b.clients, func(c *client) bool { return c.missing != "" })
	for _, f := range all {
		if err := b.keep(f.line()); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a line of the raw file, and takes it as it will be read.
func (b *bench) keep(line string) error {
	if _, err := io.WriteString(b.raw, line); err != nil {
		return fmt.Errorf("write %s: %w", b.settings.raw, err)
	}
	return b.res.take(strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
}

const (
	lagRuns, truthRuns     = 5, 5
	lagLength, truthLength = 3 * time.Second, 10 * time.Second
	between                = 150 * time.Millisecond // runs: starts, ends, nginx's count
)

// work is what a client is to do in a cell.
func (b *bench) work(s scenario) work {
	w := work{scenario: s, d: b.run, bytes: b.lengths[s.path], host: fmt.Sprintf("127.0.0.1:%d", b.server.plain)}
	w.url = "http://" + w.host + s.path
	if s.tls {
		w.url = fmt.Sprintf("https://127.0.0.1:%d%s", b.server.tls, s.path)
	}
	return w
}

func (b *bench) estimate(all []cell) time.Duration {
	sum := time.Duration(0)
	for _, cl := range all {
		w := b.work(cl.scenario)
		w.bytes = 1 // not known yet
		for _, c := range b.clients {
			if _, ok := c.command(w); !ok {
				continue
			}
			n := b.rounds
			if !c.main {
				n = min(n, b.others)
			}
			each := b.run
			if c.name == "wrk" || c.name == "ab" || c.name == "bombardier" {
				each = max(each, time.Second)
			}
			sum += time.Duration(n) * (each + between)
		}
	}
	if b.lag {
		sum += lagRuns * (lagLength + between)
	}
	if b.truth {
		sum += truthRuns * (truthLength + between)
	}
	return sum
}

// takesPart spreads m of n rounds evenly.
func takesPart(round, m, n int) bool { return (round+1)*m/n > round*m/n }

// compare runs the rounds: every cell in each, so that an interrupted
// measurement has all of them, and every client in each cell.
func (b *bench) compare(ctx context.Context, all []cell) error {
	if b.rounds == 0 {
		return nil
	}
	for _, c := range all {
		if path := c.scenario.path; b.lengths[path] == 0 {
			var err error
			if b.lengths[path], err = answerLength(path, b.work(c.scenario).host); err != nil {
				return fmt.Errorf("ask nginx for %s: %w", path, err)
			}
		}
	}
	began := time.Now()
	for round := range b.rounds {
		order := slices.Clone(all)
		stats.Shuffle(order, b.seed, uint64(round)<<8)
		for n, c := range order {
			if err := b.once(ctx, round, c, uint64(round)<<8+uint64(n)+1); err != nil {
				return err
			}
		}
		var words []string
		for _, c := range all {
			if f, ok := b.res.ratio(c.String(), "wrk"); ok {
				words = append(words, fmt.Sprintf("%v %.2f", c, f.median))
			}
		}
		fmt.Printf("round %d of %d, %v: to wrk: %s\n", round+1, b.rounds, time.Since(began).Round(time.Second), strings.Join(words, ", "))
	}
	return nil
}

// once runs each client once in a cell.
func (b *bench) once(ctx context.Context, round int, c cell, stream uint64) error {
	cpu := b.clientCPU
	if c.protocol == twoCPUs {
		cpu = b.serverCPU
	}
	if err := b.server.moveTo(cpu); err != nil {
		return err
	}
	w := b.work(c.scenario)
	order := slices.Clone(b.clients)
	stats.Shuffle(order, b.seed, stream)
	for _, cl := range order {
		cmd, ok := cl.command(w)
		if !ok || !cl.main && !takesPart(round, min(b.others, b.rounds), b.rounds) {
			continue
		}
		cmd.argv = append([]string{cl.path}, cmd.argv...)
		before, _, err := b.server.settle(ctx)
		if err != nil {
			return err
		}
		// wrk overruns its time where its own threads leave its main one no CPU.
		took, failed := b.launcher.run(ctx, cmd, b.clientCPU, 2*max(b.run, time.Second)+3*time.Second, nil)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		after, own, err := b.server.settle(ctx)
		if err != nil {
			return err
		}
		r := row{round: round + 1, cell: c.String(), client: cl.name,
			cpu: took.cpu.Seconds(), wall: took.wall.Seconds(), requests: after - before - own}
		switch {
		case failed != nil:
			r.note = strings.ReplaceAll(failed.Error(), cl.path, cl.name)
			fmt.Printf("round %d, %v: %s\n", round+1, c, r.note)
		case took.cut:
			r.note = cutNote
		case r.requests == 0:
			r.note = "nginx saw no request"
		}
		if err := b.keep(r.line()); err != nil {
			return err
		}
	}
	return nil
}

// fixedRate runs hakaru at a rate and gives its report. It is in the ordinary
// class: latencies are about how threads share CPUs, and the real-time class
// shares them otherwise (turns of 100 ms, a reserve of 50 ms in each second).
func (b *bench) fixedRate(ctx context.Context, url string, d time.Duration, more ...string) (openReport, error) {
	argv := append([]string{b.clients[0].path, "load", "-d", d.String(), "--threads", "1", "--format", "json"}, more...)
	var out strings.Builder
	took, err := b.launcher.inOrdinary().run(ctx, command{argv: append(argv, url)}, b.clientCPU, d+10*time.Second, &out)
	if ctx.Err() != nil {
		return openReport{}, context.Cause(ctx)
	}
	if took.cut {
		err = errors.New("did not end in time")
	}
	// A rate that was not reached (3) has its report too.
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
		fmt.Println(err)
	} else if err != nil {
		return openReport{}, fmt.Errorf("hakaru at a fixed rate: %w", err)
	}
	return readOpen([]byte(out.String()))
}

// openReport is what is read of hakaru's report (docs/load.md).
type openReport struct {
	Latency quantiles `json:"latency"`
	Open    struct {
		Lag quantiles `json:"lag"`
	} `json:"open"`
}

type quantiles struct {
	P50 *float64 `json:"p50_seconds"`
	P99 *float64 `json:"p99_seconds"`
}

func readOpen(text []byte) (r openReport, err error) {
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read hakaru's report: %w", err)
	}
	return r, nil
}

// sendLag measures how late hakaru sends at a fixed rate.
func (b *bench) sendLag(ctx context.Context) error {
	url := b.work(scenarios[0]).url
	for n := range lagRuns {
		r, err := b.fixedRate(ctx, url, lagLength, "-c", "64", "-r", "10000", "--precise")
		if err != nil {
			return err
		}
		if err := b.openRun(n, "lag", r.Open.Lag); err != nil {
			return err
		}
	}
	return nil
}

// stalls measures latencies of a server that stalls, each time anew: its clock
// begins with its first request.
func (b *bench) stalls(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for n := range truthRuns {
		r, err := b.stalled(ctx, self)
		if err != nil {
			return err
		}
		if err := b.openRun(n, "truth", r.Latency); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stalled(ctx context.Context, self string) (r openReport, err error) {
	words := b.launcher.inOrdinary().words(b.serverCPU, []string{self, "stall"})
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = dying(syscall.SIGKILL)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start the stalling server: %w", err)
	}
	defer func() {
		stdin.Close()
		kill := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		err = errors.Join(err, cmd.Wait())
	}()
	var address string
	if _, err := fmt.Fscanln(stdout, &address); err != nil {
		return r, fmt.Errorf("read the stalling server's address: %w", err)
	}
	return b.fixedRate(ctx, "http://"+address+"/", truthLength, "-c", "16", "-r", "2000")
}

func (b *bench) openRun(n int, kind string, q quantiles) error {
	if q.P50 == nil || q.P99 == nil {
		return fmt.Errorf("hakaru's report has no p50 and p99 for the %s", kind)
	}
	o := openRow{kind, time.Duration(*q.P50 * 1e9), time.Duration(*q.P99 * 1e9)}
	fmt.Printf("%s %d: p50 %s, p99 %s\n", kind, n+1, unit.Duration(o.p50), unit.Duration(o.p99))
	return b.keep(o.line())
}
