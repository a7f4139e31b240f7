package goroutines

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/http1"
	"hakaru/internal/load/job"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// What a request costs the generator in CPU, beside net/http's client and
// beside a bare write and read of the same bytes (the floor). The service is
// this test program again, so that its CPU is not in the figures. Time per
// operation also holds the service's work; read the cpu-µs/req column.
//
//	go test ./internal/load/goroutines -run '^$' -bench BenchmarkClient -count 5

// serverVariable makes this program serve hello instead of testing.
const serverVariable = "HAKARU_LOAD_BENCH_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		if err := serveHello(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serveHello says its address and answers until its standard input ends.
func serveHello() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buffer := make([]byte, 4096)
				answer := []byte(hello)
				for {
					n, err := c.Read(buffer) // a request is one segment here
					if err != nil || n == 0 {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func startHello(b *testing.B) (address string) {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// spread shares b.N requests among connections; each gets a function that makes
// one request.
func spread(b *testing.B, connections int, connect func(i int) (request func() error, done func())) {
	b.Helper()
	requests := make([]func() error, connections)
	for i := range requests {
		request, done := connect(i)
		defer done()
		if err := request(); err != nil { // warm
			b.Fatal(err)
		}
		requests[i] = request
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var working sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for _, request := range requests {
		working.Go(func() {
			for left.Add(-1) >= 0 {
				if err := request(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e3, "cpu-µs/req")
}

func BenchmarkClient(b *testing.B) {
	address := startHello(b)
	req := hakaru.HTTPRequest{Connections: 1, KeepAlive: true}
	req.URL = "http://" + address + "/"
	to, err := endpoint.Parse(req.URL)
	if err != nil {
		b.Fatal(err)
	}
	r, err := http1.Build(req, to)
	if err != nil {
		b.Fatal(err)
	}
	for _, connections := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("hakaru/c=%d", connections), func(b *testing.B) {
			j := &job.Job{Request: r, Schedule: job.Schedule{Start: time.Now(), Total: time.Hour}, To: &job.Target{Network: to.Network, Address: to.Address}, Rec: job.NewRecorder(1, 0, time.Hour)}
			spread(b, connections, func(i int) (func() error, func()) {
				w := newWorker(j, i, nil)
				began := w.Now()
				return func() error {
					w.since.Store(int64(began))
					began, _, _ = w.once(b.Context(), began, began)
					if w.conn == nil {
						return fmt.Errorf("the connection broke: %v", w.Rec.Samples())
					}
					return nil
				}, w.drop
			})
		})
		b.Run(fmt.Sprintf("nethttp/c=%d", connections), func(b *testing.B) {
			transport := &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: http1.DefaultTimeout}
			spread(b, connections, func(int) (func() error, func()) {
				return func() error {
					res, err := client.Get(req.URL)
					if err != nil {
						return err
					}
					defer res.Body.Close()
					_, err = io.Copy(io.Discard, res.Body)
					return err
				}, func() {}
			})
		})
		b.Run(fmt.Sprintf("floor/c=%d", connections), func(b *testing.B) {
			spread(b, connections, func(int) (func() error, func()) {
				c, err := (&job.Target{Network: to.Network, Address: to.Address}).Dialer(r.Timeout)(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				buffer := make([]byte, firstBuffer)
				return func() error {
					if _, err := c.Write(r.Bytes); err != nil {
						return err
					}
					_, err := c.Read(buffer)
					return err
				}, func() { c.Close() }
			})
		})
	}
}

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
