package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hakaru"
	"hakaru/internal/host"
	"hakaru/internal/link"
	"hakaru/internal/render"
	"hakaru/internal/service/registry"
)

// agentCommand is what a conductor starts; people do not need it.
func (d *door) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "agent service|load",
		Short:  "Serve one side of a trial over standard input and output (started by hakaru run)",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1), // the role, for people who read ps
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := executable()
			if err != nil {
				return err
			}
			local := host.NewLocal(host.Settings{
				StateDir: d.stateDir(), DurableDir: d.durableDir(), LockFile: d.lockFile(), Exe: exe,
				Environ: os.Environ(), Version: builtAs(exe), CacheDir: d.versionsDir(),
			})
			warnings, err := host.Serve(cmd.Context(), link.NewPipe(d.stdin, d.stdout), local)
			for _, w := range warnings {
				d.say("%s\n", w.Message)
			}
			return err
		},
	}
}

// agents starts the service agent and the load agent of this machine.
type agents struct {
	door    *door
	exp     *hakaru.Experiment
	holder  host.Holder
	wait    bool
	waiting func(host.Holder) // called when another run has the machine and we wait

	service, load *host.Agent
	environments  [2]hakaru.Environment
	swept         []hakaru.Warning
}

// Start implements campaign.Agents. Agents that are up already are handed out
// as they are.
func (a *agents) Start(ctx context.Context) (service, load host.Host, err error) {
	if a.service != nil && a.load != nil {
		return a.service, a.load, nil
	}
	exe, err := executable()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close(ctx))
		}
	}()
	spawn := func(role string, cpus []int) (*host.Agent, error) {
		return host.Spawn(host.SpawnSpec{Exe: exe, Args: []string{"agent"}, Role: role, CPUs: cpus})
	}
	if a.service, err = spawn("service", nil); err != nil {
		return nil, nil, err
	}
	if a.load, err = spawn("load", a.exp.LoadHost.CPUs); err != nil {
		return nil, nil, err
	}
	err = a.service.Lock(ctx, host.LockAsk{Holder: a.holder})
	var busy *host.BusyError
	if errors.As(err, &busy) && a.wait {
		if a.waiting != nil {
			a.waiting(busy.Holder)
		}
		err = a.service.Lock(ctx, host.LockAsk{Holder: a.holder, Wait: true})
	}
	if err != nil {
		return nil, nil, err
	}
	hello, err := a.service.Hello(ctx, host.HelloAsk{Programs: programs(a.exp), Sweep: true})
	if err != nil {
		for _, w := range hello.Swept {
			a.door.say("hakaru: %s\n", w.Message)
		}
		return nil, nil, fmt.Errorf("greet the service agent: %w", err)
	}
	a.environments[0], a.swept = hello.Environment, hello.Swept
	loading, err := loadProgram(a.exp)
	if err != nil {
		return nil, nil, err
	}
	if hello, err = a.load.Hello(ctx, host.HelloAsk{Load: loading}); err != nil {
		return nil, nil, fmt.Errorf("greet the load agent: %w", err)
	}
	a.environments[1] = hello.Environment
	return a.service, a.load, nil
}

// Close implements campaign.Agents.
func (a *agents) Close(ctx context.Context) error {
	var errs []error
	for _, agent := range []**host.Agent{&a.load, &a.service} {
		if *agent != nil {
			errs = append(errs, (*agent).Close(ctx))
			*agent = nil
		}
	}
	return errors.Join(errs...)
}

// programs lists the binaries whose versions belong into the record; that of
// hakaru itself is there already. A relative path starts where the service does.
func programs(exp *hakaru.Experiment) []string {
	var names []string
	for _, s := range exp.Services {
		if len(s.Run) == 0 || s.Run[0] == "hakaru" {
			continue
		}
		name := s.Run[0]
		if strings.Contains(name, "/") && !filepath.IsAbs(name) {
			if len(s.Build) > 0 || hasVersions(exp, &s) {
				continue // it is made by the run, or for each version another
			}
			dir := s.Dir
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(exp.Dir, dir)
			}
			name = filepath.Join(dir, name)
		}
		names = append(names, name)
	}
	return names
}

// hasVersions reports whether the service runs from a version of the person's
// code.
func hasVersions(exp *hakaru.Experiment, s *hakaru.Service) bool {
	of := func(x hakaru.Setting) bool { return render.OfVersion(exp, s, x) }
	return slices.ContainsFunc(s.Base, of) ||
		slices.ContainsFunc(exp.Variants, func(v hakaru.Variant) bool { return slices.ContainsFunc(v.Settings, of) })
}

// loadProgram is the program that sends the load; nil where hakaru does.
func loadProgram(exp *hakaru.Experiment) (*hakaru.ProgramSpec, error) {
	if exp.Load.Program == nil {
		return nil, nil
	}
	_, load, _, err := render.Trial(exp, exp.Baseline, exp.Strata[0])
	return load.Program, err
}

// sweepFirst ends what a killed agent left behind, before any other command is
// carried out. Looking costs a directory listing; only when there is something
// is an agent started to end it. What cannot be ended is told and keeps no
// report from being read; run and try sweep once more, and refuse then.
func (d *door) sweepFirst(cmd *cobra.Command) {
	switch cmd.Name() {
	case "agent", "serve", "schema", "help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
		return
	}
	swept, err := d.sweep(cmd.Context())
	for _, w := range swept {
		d.say("hakaru: %s\n", w.Message)
	}
	if err != nil {
		d.say("hakaru: end what a killed agent left: %v\n", err)
	}
}

func (d *door) sweep(ctx context.Context) ([]hakaru.Warning, error) {
	found := 0
	var unread []error
	for _, dir := range slices.Compact([]string{d.stateDir(), d.durableDir()}) {
		left, err := registry.Abandoned(dir)
		found += len(left)
		unread = append(unread, err)
	}
	if found == 0 {
		return nil, errors.Join(unread...)
	}
	// What could not be read here the agent cannot read either, and says so.
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	agent, err := host.Spawn(host.SpawnSpec{Exe: exe, Args: []string{"agent"}, Role: "sweep"})
	if err != nil {
		return nil, err
	}
	hello, err := agent.Hello(ctx, host.HelloAsk{Sweep: true})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return hello.Swept, errors.Join(err, agent.Close(ctx))
}

// holder names this process to others who want the machine.
func holder(what string) host.Holder {
	return host.Holder{PID: os.Getpid(), What: what, Since: time.Now()}
}
