//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// config is nginx's: one worker, nothing written per request, connections that
// are kept for ever. Temporary files and logs stay in its directory, which comes
// with the other figures.
const config = `daemon off;
worker_processes 1;
worker_rlimit_nofile 8192;
pid nginx.pid;
error_log error.log;
%[1]s
events { worker_connections 4096; }
http {
	access_log off;
	default_type text/plain;
	keepalive_requests 1000000000;
	sendfile on;
	open_file_cache max=16 inactive=1h;
	open_file_cache_valid 1h;
	client_body_temp_path temp;
	proxy_temp_path temp;
	fastcgi_temp_path temp;
	uwsgi_temp_path temp;
	scgi_temp_path temp;
	server {
		listen 127.0.0.1:%[2]d backlog=4096;
		listen 127.0.0.1:%[3]d ssl backlog=4096;
		ssl_certificate cert.pem;
		ssl_certificate_key key.pem;
		root files;
		location = /hello { return 200 "hello\n"; }
		location = /status { stub_status; }
	}
}
`

// server is an nginx of our own.
type server struct {
	plain, tls int // ports
	worker     int // pid
	cmd        *exec.Cmd
	client     http.Client
	dir        string
}

// startServer brings nginx up in dir, on a CPU. stop must be called.
func startServer(ctx context.Context, l *launcher, dir string, cpu int) (*server, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program = "/usr/sbin/nginx"; unix.Access(program, unix.X_OK) != nil {
			return nil, fmt.Errorf("find nginx: %w (on Debian: apt-get install nginx-light)", err)
		}
	}
	s := &server{dir: dir, client: http.Client{Timeout: 5 * time.Second}}
	if err := s.files(); err != nil {
		return nil, fmt.Errorf("write nginx's files: %w", err)
	}
	words := l.words(cpu, []string{program, "-p", dir, "-c", "nginx.conf", "-e", "error.log"})
	s.cmd = exec.Command(words[0], words[1:]...)
	s.cmd.SysProcAttr = dying(syscall.SIGTERM) // the master ends its worker, and could not at SIGKILL
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	if err := s.ready(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
		return nil, errors.Join(fmt.Errorf("await nginx: %w: %s", err, bytes.TrimSpace(log)), s.stop())
	}
	return s, nil
}

func (s *server) files() error {
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // all at once, or one port might come twice
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	s.plain, s.tls = ports[0], ports[1]
	cert, key, err := certificate()
	if err != nil {
		return err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the worker is to read a private directory
	}
	if err := os.Mkdir(filepath.Join(s.dir, "files"), 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"nginx.conf": fmt.Appendf(nil, config, user, s.plain, s.tls),
		"cert.pem":   cert,
		"key.pem":    key,
		"files/4k":   bytes.Repeat([]byte("0123456789abcde\n"), 4<<10/16),
		"files/1m":   bytes.Repeat([]byte("0123456789abcde\n"), 1<<20/16),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// certificate is self-made, for loopback, good for a day.
func certificate() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		_, err := s.status(ctx)
		if err == nil {
			s.worker, err = childOf(s.cmd.Process.Pid)
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// childOf is the only child of a process.
func childOf(pid int) (int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil { // ended meanwhile
			continue
		}
		// "PID (name) state parent …", where a name may hold anything.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(pid) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("process %d has no child", pid)
}

// moveTo pins the worker to a CPU.
func (s *server) moveTo(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(s.worker, &one); err != nil {
		return fmt.Errorf("pin nginx to CPU %d: %w", cpu, err)
	}
	return nil
}

// status is what stub_status says.
type status struct{ active, requests uint64 }

func (s *server) status(ctx context.Context) (status, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/status", s.plain), nil)
	if err != nil {
		return status{}, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return status{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return status{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return status{}, fmt.Errorf("nginx's status: %s (built without stub_status?)", resp.Status)
	}
	return readStatus(string(text))
}

// readStatus reads
//
//	Active connections: 1
//	server accepts handled requests
//	 12 12 345
//	Reading: 0 Writing: 1 Waiting: 0
func readStatus(text string) (status, error) {
	fields := strings.Fields(text)
	if len(fields) < 10 || fields[0] != "Active" || fields[6] != "requests" {
		return status{}, fmt.Errorf("nginx's status reads %q", text)
	}
	active, err1 := strconv.ParseUint(fields[2], 10, 64)
	requests, err2 := strconv.ParseUint(fields[9], 10, 64)
	return status{active, requests}, errors.Join(err1, err2)
}

// settle waits until no connection but ours is open, for at most a second, and
// gives the number of requests so far and how many of them were its own.
func (s *server) settle(ctx context.Context) (requests, own uint64, err error) {
	for began := time.Now(); ; {
		now, err := s.status(ctx)
		if err != nil {
			return 0, 0, err
		}
		own++
		if now.active <= 1 || time.Since(began) > time.Second {
			return now.requests, own, nil
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// stop ends nginx, by its pid.
func (s *server) stop() error {
	s.client.CloseIdleConnections()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop nginx: %w", err)
	}
	kill := time.AfterFunc(10*time.Second, func() { s.cmd.Process.Kill() })
	defer kill.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("stop nginx: %w", err)
	}
	return nil
}
