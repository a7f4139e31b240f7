package program

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"time"

	"hakaru"
	"hakaru/internal/unit"
	"hakaru/internal/watch/kernel"
)

// left is what a warm-up has walked away from. ab and wrk end by their time in the
// middle of up to as many requests as they have connections; a service that has
// accepted one, or will from its queue, works on it all the same, and that would
// be in the time of the measured run: the slower the service, the more of it.
//
// Such a request is a TCP connection that this machine has closed and the service
// has not. Where the load goes through a proxy, or over a unix socket, that is all
// that can be seen from here.
type left struct {
	diag   *kernel.Diag
	port   uint16                     // of the service; 0: it is not known
	before map[kernel.Connection]bool // those that there were before the warm-up
}

// watchLeft is called before the warm-up.
func (r *running) watchLeft() (*left, error) {
	diag, err := kernel.OpenDiag()
	if err != nil {
		return nil, err
	}
	l := &left{diag: diag, port: portOf(r.spec.Options["url"])}
	if l.port == 0 { // whatever else goes on here is not the load's
		if l.before, err = diag.Closing(); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *left) close() {
	if l != nil {
		_ = l.diag.Close() // nothing was written to it
	}
}

// behind returns the connections that the service has not done with.
func (l *left) behind() (map[kernel.Connection]bool, error) {
	all, err := l.diag.Closing()
	maps.DeleteFunc(all, func(c kernel.Connection, _ bool) bool {
		return l.before[c] || l.port != 0 && c.Port() != l.port
	})
	return all, err
}

// answered waits, bucket by bucket and no longer than limit, until the service
// has done with what there is left now.
func (r *running) answered(ctx context.Context, l *left, limit time.Duration) error {
	if l == nil {
		return nil
	}
	waiting, err := l.behind()
	last := len(r.buckets) + int(limit/hakaru.BucketWidth)
	for err == nil && len(waiting) > 0 && len(r.buckets) < last {
		if err := r.toBoundary(ctx); err != nil {
			return err
		}
		var now map[kernel.Connection]bool
		now, err = l.behind()
		maps.DeleteFunc(waiting, func(c kernel.Connection, _ bool) bool { return !now[c] })
	}
	switch {
	case err != nil:
		r.notes = append(r.notes, hakaru.Warning{Code: "left_over", Message: fmt.Sprintf(
			"whether the service still worked on what the warm-up left behind when the measured run began cannot be told (%v)", err)})
	case len(waiting) > 0:
		r.notes = append(r.notes, hakaru.Warning{Code: "left_over", Message: fmt.Sprintf(
			"of what the warm-up left behind when it ended the service had not done with %d connections %s later, when the measured run began: its work on them is in the figures", len(waiting), unit.Duration(limit))})
	}
	return nil
}

// portOf is the port that a URL is about; 0 where it is none of HTTP.
func portOf(text string) uint16 {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return 0
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint16(port)
	}
	return map[string]uint16{"http": 80, "https": 443}[u.Scheme]
}
