package service

import (
	"context"
	"fmt"
	"slices"

	"hakaru"
	"hakaru/internal/service/proof"
	"hakaru/internal/watch/kernel"
)

// Prove answers whether settings are in force, by what the running processes,
// the kernel and the service itself say. Every ask gets one proof, in order.
func (s *Stack) Prove(ctx context.Context, asks []hakaru.Ask, when hakaru.Moment) []hakaru.Proof {
	proofs := make([]hakaru.Proof, 0, len(asks))
	for _, ask := range asks {
		// Only at readiness is there time to ask again: under load every look
		// costs the CPU that is being measured.
		proofs = append(proofs, s.proveOne(ctx, ask, when, when == hakaru.AtReady && !ask.Absent))
	}
	return proofs
}

func (s *Stack) proveOne(ctx context.Context, ask hakaru.Ask, when hakaru.Moment, again bool) hakaru.Proof {
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
	e := proof.Seek(ctx, s.subject(u), ask, again)
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

// subject is the unit as proofs see it.
func (s *Stack) subject(u *unit) proof.Subject {
	on := proof.Subject{
		Group: u.group, Dir: s.place.Dir, Names: s.place.Names, Leased: s.isLease,
		Output: func() (string, bool) {
			head, tail, cut := u.out.text()
			return head + tail, cut > 0
		},
	}
	for i := range s.place.Units {
		if s.place.Units[i].Service == u.spec.Service {
			on.Files = append(on.Files, s.place.Units[i].Files...)
		}
	}
	return on
}

func (s *Stack) isLease(l kernel.Listener) bool {
	return slices.ContainsFunc(s.leases, func(x *lease) bool {
		return x.port != 0 && l.Addr.Port() == x.port || x.path != "" && l.Path == x.path
	})
}
