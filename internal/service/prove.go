package service

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"

	"hakaru"
	"hakaru/internal/service/launch"
	"hakaru/internal/service/proof"
	"hakaru/internal/watch/kernel"
)

// Prove answers whether settings are in force, by what the running processes,
// the kernel and the service itself say. Every ask gets one proof, in order, but
// those that cannot be answered at this moment and can at another (see due).
func (s *Stack) Prove(ctx context.Context, asks []hakaru.Ask, when hakaru.Moment) []hakaru.Proof {
	proofs := make([]hakaru.Proof, 0, len(asks))
	// Who listens where is looked up once for all of them: it takes a look at
	// every process.
	known := map[string]error{}
	foreign := func(address string) error {
		err, found := known[address]
		if !found {
			err = s.strangers().At(address)
			known[address] = err
		}
		return err
	}
	for _, ask := range asks {
		if !s.due(ask, when) {
			continue
		}
		proofs = append(proofs, s.proveOne(ctx, ask, when, again(ask, when), foreign))
	}
	return proofs
}

// again says until when to ask. Only at readiness is there time for it: under load
// every look costs the CPU that is being measured, so there only a number that
// contradicts is looked at again, as the trial would be void by it anyway.
func again(ask hakaru.Ask, when hakaru.Moment) proof.Again {
	switch counted := ask.Kind == "processes" || ask.Kind == "threads"; {
	case when == hakaru.AtReady && !ask.Absent:
		return proof.UntilYes
	case counted:
		return proof.WhileNo
	}
	return proof.Once
}

func (s *Stack) proveOne(ctx context.Context, ask hakaru.Ask, when hakaru.Moment, again proof.Again, foreign func(string) error) hakaru.Proof {
	p := hakaru.Proof{Service: ask.Service, Setting: ask.Setting, Asked: ask.Asked, When: when}
	if ask.NotProof != "" {
		p.Found = ask.NotProof
		return p
	}
	u := s.unitOf(ask.Service)
	if u == nil {
		p.Found = fmt.Sprintf("no service %q is up", ask.Service)
		return p
	}
	p.Service = u.spec.Service
	// A leased port differs from trial to trial: the proof keeps its name, so
	// that it is the same in all of them.
	ask.Asked, ask.Contains, ask.Equals = s.place.Names.Expand(ask.Asked), s.place.Names.Expand(ask.Contains), s.place.Names.Expand(ask.Equals)
	on := s.subject(u)
	if u.attached == nil { // otherwise whoever answers there is who is asked
		on.Foreign = foreign
	}
	e := proof.Seek(ctx, on, ask, again)
	p.Found, p.Source, p.Holds = e.Found, e.Source, e.Holds
	return p
}

func (s *Stack) unitOf(service string) *unit {
	for _, u := range s.units {
		if u.spec.Service == service || service == "" && len(s.units) == 1 {
			return u
		}
	}
	return nil
}

// due reports whether an ask is to be put at this moment: not before the setting
// can be seen, and a count of lines not again when some of them may be lost.
func (s *Stack) due(ask hakaru.Ask, when hakaru.Moment) bool {
	order := []hakaru.Moment{hakaru.AtReady, hakaru.UnderLoad, hakaru.AtEnd}
	from, now := max(0, slices.Index(order, ask.From)), slices.Index(order, when)
	if now < from {
		return false
	}
	if !ask.Count || now == from {
		return true
	}
	u := s.unitOf(ask.Service)
	if u == nil || u.out == nil {
		return true
	}
	_, _, cut := u.out.Text()
	return cut == 0
}

// subject is the unit as proofs see it.
func (s *Stack) subject(u *unit) proof.Subject {
	on := proof.Subject{
		PID: u.group.Leader, Group: u.group, Dir: s.place.Dir, Names: s.place.Names, Attached: u.attached != nil,
		SQL:     s.place.Names.Expand(u.spec.SQL),
		Command: func(words []string) (*exec.Cmd, error) { return s.commandAs(u, words) },
		Serving: func(all []kernel.Listener) []kernel.Listener { return s.leases.Serving(u.spec.Ready, all) },
	}
	if u.out != nil {
		on.Output = func() (string, bool) {
			head, tail, cut := u.out.Text()
			return head + tail, cut > 0
		}
	}
	on.Given = u.env
	for _, r := range s.place.Units {
		if r.Service == u.spec.Service {
			on.Files = append(on.Files, r.Files...)
			on.Commit = r.Commit
			if r.Attached {
				on.PID = r.PID
			}
		}
	}
	return on
}

// commandAs makes a command that runs as the unit does: as its user, in its
// directory, with its environment. It has no mark: it is no process of the
// service, and whoever runs it ends it.
func (s *Stack) commandAs(u *unit, words []string) (*exec.Cmd, error) {
	env := launch.Environment(s.opt.Environ, u.spec.Env, "")
	path, err := launch.LookUp(words[0], u.spec.Dir, env)
	if err != nil {
		return nil, err
	}
	credential, err := launch.Credential(u.spec.User)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: words, Env: env, Dir: u.spec.Dir, SysProcAttr: &syscall.SysProcAttr{Credential: credential}}, nil
}
