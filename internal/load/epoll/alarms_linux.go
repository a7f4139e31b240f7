package epoll

import "time"

// alarm is a moment at which something is to be done for a connection, unless it
// has got another socket by then.
type alarm struct {
	at    time.Duration
	index int32
	life  int32
}

// alarms is a binary heap, the earliest first.
type alarms []alarm

func (h alarms) first() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].at
}

func (h *alarms) add(a alarm) {
	*h = append(*h, a)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].at <= s[i].at {
			return
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

// before takes out the earliest where it is due.
func (h *alarms) before(now time.Duration) (a alarm, ok bool) {
	s := *h
	if len(s) == 0 || s[0].at > now {
		return alarm{}, false
	}
	a = s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && s[down+1].at < s[down].at {
			down++
		}
		if s[i].at <= s[down].at {
			break
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
	*h = s
	return a, true
}
