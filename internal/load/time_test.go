package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/load/goroutines"
	"hakaru/internal/load/job"

	"github.com/google/go-cmp/cmp"
)

// Here time is the bubble's: it moves only while everybody waits, so that
// counts and moments are exact.

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// pipes is a service in memory: serve is called for each connection, in order.
type pipes struct {
	serve   func(n int, c net.Conn)
	dialled atomic.Int64
	serving sync.WaitGroup
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	n := int(p.dialled.Add(1))
	client, server := net.Pipe()
	p.serving.Go(func() {
		defer server.Close()
		p.serve(n, server)
	})
	return client, nil
}

// eachRequest calls answer for each request that comes, until it returns false
// or the connection ends.
func eachRequest(c net.Conn, answer func() bool) {
	r := bufio.NewReader(c)
	for {
		for { // the head; no request here has a body
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
		}
		if !answer() {
			return
		}
	}
}

func say(c net.Conn, text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

func plainRequest(connections int) hakaru.HTTPRequest {
	return hakaru.HTTPRequest{URL: "http://service.test/", Connections: connections, KeepAlive: true}
}

// inBubble runs a load against p and waits for p.
func inBubble(t *testing.T, p *pipes, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) hakaru.LoadReport {
	t.Helper()
	report, err := keep(t.Context(), req, w, emit, goroutines.Engine{}, p.dial)
	if err != nil {
		t.Fatal(err)
	}
	p.serving.Wait()
	return report
}

func kinds(report hakaru.LoadReport) (good uint64, bad map[hakaru.ErrorKind]uint64) {
	bad = map[hakaru.ErrorKind]uint64{}
	for _, b := range report.Buckets {
		good += b.Good
		for kind, n := range b.Kinds {
			bad[hakaru.ErrorKind(kind)] += n
		}
	}
	return good, bad
}

func column(t *testing.T, report hakaru.LoadReport, name string) (total float64) {
	t.Helper()
	for i, c := range report.Counters {
		if c.Name == name {
			for _, b := range report.Buckets {
				total += b.Counters[i]
			}
			return total
		}
	}
	t.Fatalf("no column %s in %v", name, report.Counters)
	return 0
}

func TestClosedLoopIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 10 * time.Millisecond
		const connections = 3
		start := time.Now().Add(2 * time.Second)
		var first, last atomic.Int64
		first.Store(1 << 62)
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool {
				at := int64(time.Since(start))
				first.Store(min(first.Load(), at))
				last.Store(max(last.Load(), at))
				time.Sleep(each) // the service time
				return say(c, hello)
			})
		}}
		type seen struct {
			at, late time.Duration
			good     uint64
		}
		var emitted []seen
		emit := func(b hakaru.Bucket) {
			emitted = append(emitted, seen{b.At, time.Since(start) - b.At - hakaru.BucketWidth, b.Good})
		}
		w := hakaru.Window{Start: start, WarmUp: time.Second, Length: time.Second}
		report := inBubble(t, p, plainRequest(connections), w, emit)

		// The k-th answer of a connection comes at k·10 ms; the one at 500 ms is
		// the next bucket's, and the one at the end nobody's.
		want := []seen{
			{0, grace, connections * 49}, {500 * time.Millisecond, grace, connections * 50},
			{1000 * time.Millisecond, grace, connections * 50}, {1500 * time.Millisecond, 0, connections * 50},
		}
		if d := cmp.Diff(want, emitted, cmp.AllowUnexported(seen{})); d != "" {
			t.Errorf("buckets (-want +got)\n%s", d)
		}
		if at := time.Duration(first.Load()); at != 0 {
			t.Errorf("the first request came %v after the start, want 0", at)
		}
		if at := time.Duration(last.Load()); at != w.Total()-each {
			t.Errorf("the last request came at %v, want %v: none at the end", at, w.Total()-each)
		}
		if report.Connections != connections || p.dialled.Load() != connections {
			t.Errorf("%d connections reported, %d made, want %d", report.Connections, p.dialled.Load(), connections)
		}
		if n := column(t, report, hakaru.CounterConnects); n != 0 {
			t.Errorf("%g connections opened during the load, want 0: all were before it", n)
		}
		h, err := latency.Decode(report.Latency)
		if err != nil {
			t.Fatal(err)
		}
		if h.Count() != connections*100 {
			t.Errorf("%d service times in the measured window, want %d", h.Count(), connections*100)
		}
		if p50 := h.Quantile(0.5); (p50-each).Abs() > each/1000 || h.Max()-each > each/1000 {
			t.Errorf("service time p50 %v, max %v, want %v", p50, h.Max(), each)
		}
	})
}

func TestWindowThatEndsWithinABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(100 * time.Millisecond); return say(c, hello) })
		}}
		report := inBubble(t, p, plainRequest(1), hakaru.Window{WarmUp: 500 * time.Millisecond, Length: 750 * time.Millisecond}, nil)
		var got []uint64
		for _, b := range report.Buckets {
			got = append(got, b.Good)
		}
		if d := cmp.Diff([]uint64{4, 5, 3}, got); d != "" { // at 100…400, 500…900, 1000…1200
			t.Errorf("(-want +got)\n%s", d)
		}
		if h, err := latency.Decode(report.Latency); err != nil || h.Count() != 8 || report.Tally.Took != 750*time.Millisecond {
			t.Errorf("%d service times (%v) in %v, want those of the window, the part of a bucket too", h.Count(), err, report.Tally.Took)
		}
	})
}

func TestTimeout(t *testing.T) {
	const timeout = time.Second
	for _, c := range []struct {
		name   string
		answer time.Duration // 0: never
	}{{"never answers", 0}, {"answers too late", timeout + time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var waits []time.Duration
				p := &pipes{serve: func(n int, conn net.Conn) {
					eachRequest(conn, func() bool {
						began := time.Now()
						if c.answer > 0 {
							time.Sleep(c.answer)
							return say(conn, hello)
						}
						_, err := conn.Read(make([]byte, 1)) // until we hang up
						mu.Lock()
						defer mu.Unlock()
						waits = append(waits, time.Since(began))
						return err == nil
					})
				}}
				req := plainRequest(1)
				req.Timeout = timeout
				report := inBubble(t, p, req, hakaru.Window{Length: 5 * time.Second}, nil)
				good, bad := kinds(report)
				// The fifth is out when the load ends.
				if d := cmp.Diff(map[hakaru.ErrorKind]uint64{hakaru.TimedOut: 4}, bad); d != "" || good != 0 {
					t.Errorf("%d good, bad (-want +got)\n%s", good, d)
				}
				for i, wait := range waits {
					if i < 4 && (wait < timeout || wait > timeout*11/10) {
						t.Errorf("hung up after %v, want within a tenth after %v", wait, timeout)
					}
				}
			})
		})
	}
}

// A slow answer of one connection must not be taken for a timeout of another
// request on it: requests just below the timeout are all good.
func TestJustInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(99 * time.Millisecond); return say(c, hello) })
		}}
		req := plainRequest(4)
		req.Timeout = 100 * time.Millisecond
		report := inBubble(t, p, req, hakaru.Window{Length: 3 * time.Second}, nil)
		if good, bad := kinds(report); good != 4*30 || len(bad) != 0 {
			t.Errorf("%d good, bad %v, want %d and none", good, bad, 4*30)
		}
	})
}

func TestRefusedBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		req := plainRequest(1)
		req.KeepAlive = false
		report, err := keep(t.Context(), req, hakaru.Window{Length: 2 * time.Second}, nil, goroutines.Engine{}, refuse)
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(0)
		for at, pause := time.Duration(0), job.FirstPause; at < 2*time.Second; at, pause = at+pause, min(2*pause, job.LongPause) {
			want++
		}
		good, bad := kinds(report)
		if d := cmp.Diff(map[hakaru.ErrorKind]uint64{hakaru.Refused: want}, bad); d != "" || good != 0 {
			t.Errorf("%d good, bad (-want +got)\n%s", good, d)
		}
		if report.Connections != 0 {
			t.Errorf("%d connections, want 0", report.Connections)
		}
		if len(report.Samples) != job.SamplesPerKind || report.Samples[0].Kind != hakaru.Refused {
			t.Errorf("samples %v, want %d of refused", report.Samples, job.SamplesPerKind)
		}
	})
}

// A service that comes up after a while is found again, and its time to come
// up is no service time.
func TestServiceComesUpLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(10 * time.Millisecond); return say(c, hello) })
		}}
		dial := func(ctx context.Context) (net.Conn, error) {
			if time.Since(start) < 700*time.Millisecond {
				return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
			}
			return p.dial(ctx)
		}
		report, err := keep(t.Context(), plainRequest(2), hakaru.Window{Length: 2 * time.Second}, nil, goroutines.Engine{}, dial)
		if err != nil {
			t.Fatal(err)
		}
		p.serving.Wait()
		if report.Buckets[0].Good != 0 || report.Buckets[3].Good != 100 {
			t.Errorf("good answers %d in the first, %d in the last bucket, want 0 and 100", report.Buckets[0].Good, report.Buckets[3].Good)
		}
		h, err := latency.Decode(report.Latency)
		if err != nil || h.Max() > 11*time.Millisecond {
			t.Errorf("longest service time %v (%v), want 10 ms", h.Max(), err)
		}
		if n := column(t, report, hakaru.CounterConnects); n != 2 {
			t.Errorf("%g connections opened, want 2", n)
		}
	})
}

// A connect that begins before the start and fails after it counts once, and
// the next attempt begins at once.
func TestConnectThatFailsAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(100 * time.Millisecond); return say(c, hello) })
		}}
		first := true
		dial := func(ctx context.Context) (net.Conn, error) {
			if !first {
				return p.dial(ctx)
			}
			first = false
			time.Sleep(time.Second)
			return nil, os.NewSyscallError("connect", syscall.ETIMEDOUT)
		}
		w := hakaru.Window{Start: time.Now().Add(700 * time.Millisecond), Length: time.Second}
		report, err := keep(t.Context(), plainRequest(1), w, nil, goroutines.Engine{}, dial)
		if err != nil {
			t.Fatal(err)
		}
		p.serving.Wait()
		good, bad := kinds(report)
		if d := cmp.Diff(map[hakaru.ErrorKind]uint64{hakaru.TimedOut: 1}, bad); d != "" || good != 6 { // 400…900 ms
			t.Errorf("%d good, want 6; bad (-want +got)\n%s", good, d)
		}
	})
}

// What is out at the end gets a second and counts in no bucket.
func TestEndOfTheWindow(t *testing.T) {
	for _, c := range []struct {
		name         string
		answer, want time.Duration
	}{
		{"answered after the end", 700 * time.Millisecond, 1400 * time.Millisecond},
		{"never answered", time.Hour, time.Second + lastAnswers},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				p := &pipes{serve: func(n int, conn net.Conn) {
					eachRequest(conn, func() bool {
						timer := time.AfterFunc(c.answer, func() { say(conn, hello) })
						_, err := conn.Read(make([]byte, 1)) // the next request's first byte
						timer.Stop()
						return err == nil
					})
				}}
				report, err := keep(t.Context(), plainRequest(1), hakaru.Window{Length: time.Second}, nil, goroutines.Engine{}, p.dial)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				p.serving.Wait()
				good, bad := kinds(report)
				if want := uint64((time.Second - 1) / c.answer); good != want || len(bad) != 0 {
					t.Errorf("%d good, bad %v, want %d and none", good, bad, want)
				}
				if took != c.want {
					t.Errorf("the load took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// Broken off, the load keeps its whole buckets and says why it ended.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("somebody said stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(1250*time.Millisecond, func() { cancel(reason) })
		defer timer.Stop()
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(10 * time.Millisecond); return say(c, hello) })
		}}
		began := time.Now()
		report, err := keep(ctx, plainRequest(4), hakaru.Window{Length: 10 * time.Second}, nil, goroutines.Engine{}, p.dial)
		if !errors.Is(err, reason) {
			t.Errorf("error %v, want %v", err, reason)
		}
		if took := time.Since(began); took != 1250*time.Millisecond {
			t.Errorf("ended after %v, want at once", took)
		}
		if len(report.Buckets) != 2 || report.Buckets[1].Good != 200 {
			t.Errorf("%d buckets, want the two whole ones", len(report.Buckets))
		}
		p.serving.Wait()
	})
}

// The service closes a kept connection after every answer and does not say so:
// sent again once, not an error.
func TestIdleCloseIsRetried(t *testing.T) {
	for _, c := range []struct {
		method string
		retry  bool
	}{{"GET", true}, {"POST", false}} {
		t.Run(c.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipes{serve: func(n int, conn net.Conn) {
					eachRequest(conn, func() bool { time.Sleep(10 * time.Millisecond); say(conn, hello); return false })
				}}
				req := plainRequest(1)
				req.Method = c.method
				report := inBubble(t, p, req, hakaru.Window{Length: time.Second}, nil)
				good, bad := kinds(report)
				retried := column(t, report, hakaru.CounterRetried)
				if c.retry && (good != 99 || len(bad) != 0 || retried != 99) {
					t.Errorf("%d good, bad %v, %g retried, want 99, none, 99", good, bad, retried)
				}
				if !c.retry && (good != 99 || bad[hakaru.Closed] != 99 || retried != 0) {
					t.Errorf("%d good, bad %v, %g retried, want 99, 99 closed, none", good, bad, retried)
				}
			})
		})
	}
}

// A new connection that is closed without an answer is an error at once, and a
// retried one that is closed again too.
func TestSecondCloseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(10 * time.Millisecond); return false })
		}}
		report := inBubble(t, p, plainRequest(1), hakaru.Window{Length: time.Second}, nil)
		good, bad := kinds(report)
		// The first connection lay idle before the start: it is retried, once.
		if good != 0 || bad[hakaru.Closed] != 98 || len(bad) != 1 || column(t, report, hakaru.CounterRetried) != 1 {
			t.Errorf("%d good, bad %v, %g retried, want 0, 98 closed, 1", good, bad, column(t, report, hakaru.CounterRetried))
		}
	})
}

// A long body that arrives in many pieces, and one before a slow end.
func TestDribble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool {
				say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for i := range 10 {
					time.Sleep(time.Millisecond)
					say(c, fmt.Sprintf("1\r\n%d\r\n", i))
				}
				return say(c, "0\r\n\r\n")
			})
		}}
		req := plainRequest(2)
		req.Expect = "456789"
		report := inBubble(t, p, req, hakaru.Window{Length: time.Second}, nil)
		if good, bad := kinds(report); good != 2*99 || len(bad) != 0 {
			t.Errorf("%d good, bad %v, want %d and none", good, bad, 2*99)
		}
	})
}
