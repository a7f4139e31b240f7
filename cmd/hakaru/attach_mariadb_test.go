package main

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the tests ask the server themselves
)

// mariadbAt is a running MariaDB that reads conf.d/tuning.cnf.
type mariadbAt struct {
	dir, socket string
	before      string
}

// smallDatabase keeps what is written to disk small: several are started at once.
const smallDatabase = `innodb_buffer_pool_size=16M
innodb_log_file_size=4M
innodb_flush_log_at_trx_commit=0
innodb_doublewrite=0
`

// installMariaDB makes a data directory, which takes seconds: once for all tests.
func installMariaDB(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	openUp(t, dir)
	data := filepath.Join(dir, "data")
	small := filepath.Join(dir, "small.cnf")
	write(t, small, "[mysqld]\n"+smallDatabase, 0o644)
	cmd := exec.Command("mariadb-install-db", "--defaults-file="+small, "--datadir="+data, "--user=mysql",
		"--auth-root-authentication-method=normal", "--skip-test-db")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install a database: %v\n%s", err, out)
	}
	return data
}

// openUp lets another user reach a directory of the test.
func openUp(t *testing.T, dir string) {
	t.Helper()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// startMariaDB starts one on a copy of data. Its restart script is a plain one:
// the server stays in the background of the script's own session.
func startMariaDB(t *testing.T, data string) mariadbAt {
	t.Helper()
	// A socket's path has to be short.
	dir, err := os.MkdirTemp("", "hk-db-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	openUp(t, dir)
	m := mariadbAt{dir: dir, socket: filepath.Join(dir, "db.sock")}
	for _, words := range [][]string{{"cp", "-a", data, dir + "/data"}, {"mkdir", dir + "/conf.d", dir + "/run"}, {"chown", "mysql", dir, dir + "/run"}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	write(t, filepath.Join(dir, "my.cnf"), strings.ReplaceAll(`[mysqld]
user=mysql
datadir=ROOT/data
socket=ROOT/db.sock
pid-file=ROOT/run/db.pid
log-error=ROOT/run/db.err
skip-networking
`+smallDatabase+`!includedir ROOT/conf.d/
`, "ROOT", dir), 0o644)
	write(t, filepath.Join(dir, "conf.d", "own.cnf"), "[mysqld]\nmax_connections=33\n", 0o644)
	write(t, filepath.Join(dir, "tuning.cnf"), "[mysqld]\nmax_connections={db.max}\n", 0o644)
	write(t, filepath.Join(dir, "restart"), strings.ReplaceAll(`#!/bin/sh
unset TMPDIR
pid=$(cat ROOT/run/db.pid 2>/dev/null)
tries=0
while [ -n "$pid" ] && [ -e ROOT/run/db.pid ] && kill "$pid" 2>/dev/null; do
  # MariaDB can hang when it is told to end just after its start.
  tries=$((tries + 1))
  if [ $tries -gt 100 ]; then kill -9 "$pid"; rm -f ROOT/run/db.pid; fi
  sleep 0.1
done
mariadbd --defaults-file=ROOT/my.cnf </dev/null >/dev/null 2>&1 &
server=$!
until mariadb-admin --no-defaults --user=root --socket=ROOT/db.sock ping >/dev/null 2>&1; do
  kill -0 $server 2>/dev/null || { tail -n 3 ROOT/run/db.err; exit 1; }
  sleep 0.05
done
`, "ROOT", dir), 0o755)
	m.before = m.state(t)
	if out, err := exec.Command("sh", filepath.Join(dir, "restart")).CombinedOutput(); err != nil {
		t.Fatalf("start MariaDB: %v\n%s", err, out)
	}
	t.Cleanup(func() { endDaemon(t, filepath.Join(dir, "run", "db.pid")) })
	m.same(t)
	return m
}

// state is everything that the server reads: content, mode and owner.
func (m mariadbAt) state(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.dir, "conf.d", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range append(files, filepath.Join(m.dir, "my.cnf")) {
		fmt.Fprintf(&all, "%s: %s\n", f, fileState(t, f))
	}
	return all.String()
}

func (m mariadbAt) ask(statement string) (value string, err error) {
	db, err := sql.Open("mysql", "root@unix("+m.socket+")/?timeout=5s&readTimeout=5s")
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRow(statement).Scan(&value)
	return value, err
}

// same checks that it is as it was, in its files and in force.
func (m mariadbAt) same(t *testing.T) {
	t.Helper()
	if now := m.state(t); now != m.before {
		t.Errorf("its config was\n%s\nand is\n%s", m.before, now)
	}
	eventually(t, "MariaDB with its own settings", func() error {
		got, err := m.ask("select @@max_connections")
		if err == nil && got != "33" {
			err = fmt.Errorf("max_connections is %s", got)
		}
		return err
	})
}

// experiment is a stack: hakaru starts a service beside the database, and the
// load goes to that.
func (m mariadbAt) experiment() string {
	return strings.NewReplacer("ROOT", m.dir, "SOCKET", m.socket).Replace(`
services:
  db:
    settings: ROOT/tuning.cnf
    sql: root@unix(SOCKET)/
    attach: {connect: "unix:SOCKET", timeout: 30s}
    apply: install -m 644 {file} ROOT/conf.d/tuning.cnf
    restart: ROOT/restart
    undo: sh -c 'rm -f ROOT/conf.d/tuning.cnf && exec ROOT/restart'
  app:
    kind: serve
    run: hakaru serve --listen {http} --wait 2ms
    ports: [http]
    after: [db]
factors: {db.max: [44, 55]}
prove:
  db.max: [{sql: "select @@max_connections"}]
load: {http: {url: "http://{http}/9000", connections: 2, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {blocks: 2, calibrate: 1}
`)
}

// TestAttachedMariaDB measures with a MariaDB that hakaru did not start in the
// stack: after success, a failed apply, a config that does not let it come up,
// and after SIGKILL at several moments it is as before.
func TestAttachedMariaDB(t *testing.T) {
	data := installMariaDB(t)
	t.Run("success", func(t *testing.T) {
		t.Parallel()
		m := startMariaDB(t, data)
		s := newSite(t, m.experiment())
		s.output("run", "--format", "json", "app.yaml")
		m.same(t)
		s.clean()
		r := s.report()
		r.fine(t)
		contains(t, string(s.output("report", "last")), "max = 44 (", "by sql: select @@max_connections)")
	})
	for _, c := range []struct {
		name, from, to string
		said           []string
	}{
		{"apply fails", "apply: install -m 644 {file} ROOT/conf.d/tuning.cnf", "apply: install -m 644 {file} ROOT/no-such-directory/tuning.cnf",
			[]string{"apply failed (exit status 1)", "no-such-directory"}},
		{"it refuses the config", "restart: ROOT/restart", "restart: sh -c 'echo max_conections=4 >> ROOT/conf.d/tuning.cnf; exec ROOT/restart'",
			[]string{"restart failed (exit status 1)", "Aborting"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := startMariaDB(t, data)
			in := strings.NewReplacer("ROOT", m.dir)
			s := newSite(t, strings.Replace(m.experiment(), in.Replace(c.from), in.Replace(c.to), 1))
			contains(t, s.failed(1, "try", "app.yaml"), c.said...)
			m.same(t)
			s.clean()
		})
	}
	random := rand.New(rand.NewPCG(3, 5))
	for i := range 5 {
		victims := []string{"conductor and agent", "agent", "conductor"}[i%3]
		after := time.Duration(random.Int64N(int64(8 * time.Second)))
		t.Run(fmt.Sprintf("%s killed after %s", victims, after.Round(time.Millisecond)), func(t *testing.T) {
			t.Parallel()
			m := startMariaDB(t, data)
			s := newSite(t, m.experiment())
			s.killSome(victims, after)
			if victims == "conductor" {
				s.gone() // its agent puts back by itself
			}
			t.Log(s.failed(0, "list"))
			m.same(t)
			s.clean()
		})
	}
}
