package main

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// freeAddress is one on which nobody listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// eventually asks until there is no error; the test's own limit is what a
// machine under load may take.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) // there is no event for what another program does
	}
}

func pidIn(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// endDaemon ends a daemon of the test by its pid file.
func endDaemon(t *testing.T, file string) {
	pid := pidIn(file)
	if pid == 0 {
		return
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil {
			return // it has ended
		}
		for range 250 {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	t.Errorf("daemon %d does not end", pid)
}

// nginxAt is a running nginx whose answers name the setting that is in force.
type nginxAt struct {
	dir, address string
	before       string // the config and who may read it
}

const nginxConf = `worker_processes %s;
pid nginx.pid;
error_log error.log;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen %s; location / { return 200 "workers=%[1]s\n"; } }
}
`

// startNginx starts one as a daemon and writes the scripts of the person who
// runs it: replace stops it and starts it again, undo puts the config back
// first, reload leaves the master.
func startNginx(t *testing.T) nginxAt {
	t.Helper()
	n := nginxAt{dir: t.TempDir(), address: freeAddress(t)}
	conf := fmt.Sprintf(nginxConf, "1", n.address)
	write(t, filepath.Join(n.dir, "nginx.conf"), conf, 0o640)
	write(t, filepath.Join(n.dir, "kept.conf"), conf, 0o640)
	write(t, filepath.Join(n.dir, "edit.conf"), fmt.Sprintf(nginxConf, "{workers}", n.address), 0o644)
	command := fmt.Sprintf("nginx -p %s/ -c nginx.conf", n.dir)
	head := "#!/bin/sh\nunset TMPDIR\ncd " + n.dir + " || exit 1\n"
	replace := head + `pid=$(cat nginx.pid 2>/dev/null)
if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
  kill -QUIT "$pid"
  while [ -e nginx.pid ]; do sleep 0.02; done
fi
exec ` + command + "\n"
	write(t, filepath.Join(n.dir, "replace"), replace, 0o755)
	write(t, filepath.Join(n.dir, "reload"), head+"exec "+command+" -s reload\n", 0o755)
	write(t, filepath.Join(n.dir, "undo"), head+"cat kept.conf > nginx.conf || exit 1\nexec ./replace\n", 0o755)
	n.before = n.state(t)
	start := exec.Command("nginx", "-p", n.dir+"/", "-c", "nginx.conf")
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("start nginx: %v\n%s", err, out)
	}
	t.Cleanup(func() { endDaemon(t, filepath.Join(n.dir, "nginx.pid")) })
	n.same(t)
	return n
}

// state is the config byte for byte, with mode and owner.
func (n nginxAt) state(t *testing.T) string {
	t.Helper()
	return fileState(t, filepath.Join(n.dir, "nginx.conf"))
}

func fileState(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%s %d:%d\n%s", info.Mode(), owner.Uid, owner.Gid, text)
}

// answer is what nginx says, or why it does not.
func (n nginxAt) answer() (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + n.address + "/")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(text)), err
}

// same checks that nginx is as it was, in its file and in force.
func (n nginxAt) same(t *testing.T) {
	t.Helper()
	if now := n.state(t); now != n.before {
		t.Errorf("nginx.conf was\n%s\nand is\n%s", n.before, now)
	}
	eventually(t, "nginx with its own settings", func() error {
		got, err := n.answer()
		if err == nil && got != "workers=1" {
			err = fmt.Errorf("it answers %q", got)
		}
		return err
	})
}

// changed waits until a variant's settings are in force.
func (n nginxAt) changed(t *testing.T) {
	t.Helper()
	eventually(t, "the variant in force", func() error {
		got, err := n.answer()
		if err == nil && got == "workers=1" {
			err = fmt.Errorf("it answers %q", got)
		}
		return err
	})
}

// experiment attaches to it; the first of the words is the restart script.
func (n nginxAt) experiment(restart string) string {
	return strings.NewReplacer("DIR", n.dir, "ADDRESS", n.address, "RESTART", restart).Replace(`
service:
  settings: DIR/edit.conf
  attach: {get: "http://ADDRESS/", body: "workers=", timeout: 20s}
  apply: sh -c 'cat "$1" > DIR/nginx.conf' sh {file}
  restart: DIR/RESTART
  undo: DIR/undo
factors: {workers: [2, 3]}
prove:
  workers: [{http: "http://ADDRESS/", contains: {"2": "workers=2", "3": "workers=3"}}]
load: {http: {url: "http://ADDRESS/", connections: 1, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {blocks: 2, calibrate: 1}
`)
}
