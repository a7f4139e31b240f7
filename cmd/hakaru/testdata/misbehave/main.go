// Command misbehave is a web service that does one thing wrong, for the tests of
// what hakaru does about it.
//
//	misbehave -listen 127.0.0.1:8080 -mode wrong-body
package main

import (
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func spin() {
	for { //nolint:staticcheck // that is what it is for
	}
}

// resetting resets every second connection.
type resetting struct {
	net.Listener
	accepted int
}

func (l *resetting) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.accepted++; l.accepted%2 == 1 {
			return c, nil
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

func main() {
	listen := flag.String("listen", "", "address")
	mode := flag.String("mode", "", "fine, wrong-body, 500, 502, 404, redirect, silent, echo, reset, reset-second: every second connection, tls: with a certificate of nobody's, exits, ignores-term, daemon, orphan, chatty, slow-start, crash, front: pass on to another, get: ask one, or spin: use CPUs with eight threads until killed")
	to := flag.String("to", "", "address to pass requests on to, for front")
	after := flag.Duration("after", 200*time.Millisecond, "when, for exits and slow-start")
	flag.Parse()

	if os.Getenv("WORKERS") == "none" {
		fmt.Fprintln(os.Stderr, "misbehave: workers: none")
		os.Exit(4)
	}
	switch *mode {
	case "crash":
		fmt.Fprintln(os.Stderr, "misbehave: cannot open database: no such table: users")
		os.Exit(4)
	case "spin":
		runtime.GOMAXPROCS(8) // as many threads, however few CPUs it is pinned to
		for range 7 {
			go spin()
		}
		spin()
	case "daemon", "orphan":
		// Start ourselves as a well-behaved service in a session of its own,
		// and either leave, as daemons do, or serve beside it.
		cmd := exec.Command("/proc/self/exe", "-listen", *listen, "-mode", "fine")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "misbehave:", err)
			os.Exit(1)
		}
		if *mode == "daemon" {
			return
		}
		select {}
	case "get": // no service at all: ask one and print its answer
		answer, err := http.Get("http://" + *listen + "/")
		if err != nil {
			fmt.Fprintln(os.Stderr, "misbehave:", err)
			os.Exit(1)
		}
		if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
			fmt.Fprintln(os.Stderr, "misbehave:", err)
			os.Exit(1)
		}
		return
	case "ignores-term":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	case "slow-start":
		timer := time.NewTimer(*after)
		<-timer.C
	}
	network, address := "tcp", *listen
	if path, is := strings.CutPrefix(*listen, "unix:"); is {
		network, address = "unix", path
		_ = os.Remove(path) // one that was killed leaves it
	}
	l, err := net.Listen(network, address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "misbehave:", err)
		os.Exit(1)
	}
	fmt.Println("misbehave: serving on", l.Addr())
	if *mode == "reset-second" {
		l = &resetting{Listener: l}
	}
	var loaded sync.Once
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Readiness asks for /ready and is always answered well.
		if r.URL.Path != "/ready" {
			// Slow enough that two connections need next to no CPU: what else
			// runs on the machine then hardly matters.
			time.Sleep(2 * time.Millisecond)
			switch *mode {
			case "front":
				httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: *to}).ServeHTTP(w, r)
				return
			case "exits": // so long after the first of the load
				loaded.Do(func() {
					time.AfterFunc(*after, func() {
						fmt.Fprintln(os.Stderr, "misbehave: out of memory, giving up")
						os.Exit(7)
					})
				})
			case "wrong-body":
				fmt.Fprintln(w, "something else")
				return
			case "500":
				http.Error(w, "template not found: index.html", http.StatusInternalServerError)
				return
			case "reset": // the connection, without an answer
				c, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_ = c.(*net.TCPConn).SetLinger(0)
					c.Close()
				}
				return
			case "404":
				http.NotFound(w, r)
				return
			case "502":
				http.Error(w, "no upstream; password=GEHEIM", http.StatusBadGateway)
				return
			case "redirect":
				http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
				return
			case "silent": // until nobody waits any more
				<-r.Context().Done()
				return
			case "echo":
				if _, err := io.Copy(w, r.Body); err != nil {
					fmt.Fprintln(os.Stderr, "misbehave:", err)
				}
				return
			case "chatty":
				for range 16 { // a line that no compression makes smaller
					fmt.Println(rand.Text(), rand.Text(), rand.Text(), rand.Text())
				}
			}
		}
		fmt.Fprintln(w, "hello")
	})
	if *mode == "tls" {
		server := httptest.NewUnstartedServer(handler) // which has a certificate of its own
		server.Listener.Close()
		server.Listener = l
		server.StartTLS()
		select {}
	}
	err = http.Serve(l, handler)
	fmt.Fprintln(os.Stderr, "misbehave:", err)
	os.Exit(1)
}
