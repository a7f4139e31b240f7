package load

import (
	"context"
	"strings"
	"testing"
	"time"

	"hakaru"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNoPasswordInErrors(t *testing.T) {
	for _, address := range []string{"http://me:secret@127.0.0.1:1/", "http://me:sec ret@127.0.0.1:1/", "http://me:se/cret@127.0.0.1:1/", "http://127.0.0.1:1/?token=secret"} {
		_, err := HTTP(context.Background(), hakaru.HTTPRequest{URL: address}, hakaru.Window{}, nil)
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec ret") || strings.Contains(err.Error(), "se/cret") {
			t.Errorf("error %v: want one without the password", err)
		}
	}
}

func TestSoftLimit(t *testing.T) {
	for _, c := range []struct {
		name             string
		need, soft, hard uint64
		want             uint64
		err              string
	}{
		{"enough", 500, 1024, 4096, 1024, ""},
		{"raised", 2000, 1024, 4096, 4096, ""},
		{"too many", 5000, 1024, 4096, 0, "need 5000 open files and the hard limit is 4096: use at most 3996 connections"},
	} {
		got, err := softLimit(c.need, c.soft, c.hard, 4900)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d, %v, want %d, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestSchedule(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		w    hakaru.Window
		err  string
	}{
		{"now", hakaru.Window{Length: time.Second}, ""},
		{"soon, without a monotonic reading", hakaru.Window{Start: now.Add(time.Minute).Round(0), Length: time.Second}, ""},
		{"late within the warm-up", hakaru.Window{Start: now.Add(-time.Minute), WarmUp: time.Hour, Length: time.Second}, ""},
		{"too late", hakaru.Window{Start: now.Add(-time.Minute), WarmUp: time.Second, Length: time.Second}, "the window began 1m"},
		{"no length", hakaru.Window{Start: now}, "want a length above 0"},
		{"negative warm-up", hakaru.Window{Start: now, WarmUp: -1, Length: 1}, "warm-up"},
	} {
		s, err := newSchedule(c.w)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
		if err == nil && s.Total != c.w.Total() {
			t.Errorf("%s: total %v, want %v", c.name, s.Total, c.w.Total())
		}
	}
}
