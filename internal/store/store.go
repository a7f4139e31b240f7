// Package store keeps runs in a SQLite file: the run with its experiment and
// the person's own config files, every trial with its buckets, and what the
// services wrote during it.
//
// It takes the path of the file from the door and the nouns of package hakaru,
// and gives them back as they were. A trial is on the disk before Append
// returns. One process may write while others read; a second writer waits a
// few seconds and is then told so. The file is 0600, because configs hold
// secrets and are stored unredacted: redaction is report's work, on output.
//
// It does not decide anything: no plan, no verdict, no lock on the machine
// (two runs at once are the campaign's concern), no default path.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"hakaru"
)

// application is SQLite's application_id of a store, "hkru": it tells a store
// from the database of another program.
const application = 0x686b7275

// patience is how long a statement waits for another process's write to end.
// One write is one trial, so this is long for anything but a held lock.
const patience = 5 * time.Second

// schema is format 1. Everything that is read as a whole is a JSON body of the
// nouns of package hakaru; columns beside it repeat what lists and uniqueness
// need. Buckets are kept apart, compressed, so that listing trials does not
// read them.
const schema = `
CREATE TABLE run (
	n       INTEGER PRIMARY KEY, -- order in which runs were made
	id      TEXT NOT NULL UNIQUE,
	name    TEXT NOT NULL,
	started TEXT NOT NULL,       -- RFC 3339, UTC
	ended   TEXT,
	state   TEXT NOT NULL,
	body    BLOB NOT NULL        -- zlib of hakaru.Run as JSON
) STRICT;
CREATE TABLE trial (
	run     INTEGER NOT NULL REFERENCES run(n) ON DELETE CASCADE,
	seq     INTEGER NOT NULL,
	block   INTEGER NOT NULL,
	variant TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	void    INTEGER NOT NULL,    -- 0 or 1
	body    TEXT NOT NULL,       -- hakaru.Result as JSON, without its buckets
	buckets BLOB,                -- zlib of []hakaru.Bucket as JSON; NULL where there are none
	PRIMARY KEY (run, seq),
	UNIQUE (run, block, variant, attempt)
) STRICT;
CREATE INDEX trial_void ON trial (run, void);
CREATE TABLE output (
	run     INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	n       INTEGER NOT NULL,
	service TEXT NOT NULL,
	cut     INTEGER NOT NULL,
	text    BLOB NOT NULL,       -- zlib of the bytes
	PRIMARY KEY (run, seq, n),
	FOREIGN KEY (run, seq) REFERENCES trial (run, seq) ON DELETE CASCADE
) STRICT;
`

// Store is an open store. Its methods may be called from several goroutines.
type Store struct {
	path string
	db   *sql.DB
}

// Open opens the store at path and makes it, and its directory, where there is
// none. The caller closes it.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, patience)
}

func open(ctx context.Context, path string, wait time.Duration) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(ctx, path, wait); err != nil {
			return nil, explain("make the store", path, err)
		}
	case err != nil:
		return nil, explain("open the store", path, err)
	case !info.Mode().IsRegular():
		return nil, &Error{"open the store", path, "choose another path for the store", errors.New("it is not a regular file")}
	case info.Size() == 0:
		return nil, &Error{"open the store", path, "remove it: hakaru makes the store itself", errors.New("the file is empty")}
	case info.Mode().Perm()&0o077 != 0:
		// Copied or restored with a wider mode: the configs in it are secret.
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, explain("make private the store", path, err)
		}
	}
	db, err := connect(path, wait)
	if err != nil {
		return nil, explain("open the store", path, err)
	}
	s := &Store{path, db}
	if err := s.check(ctx); err != nil {
		db.Close()
		return nil, explain("open the store", path, err)
	}
	return s, nil
}

// Path returns where the store is, absolute.
func (s *Store) Path() string { return s.path }

// Close closes the store; the write-ahead log is folded into the file when no
// other process has it open.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return explain("close the store", s.path, err)
	}
	return nil
}

// connect gives the pool of connections to a file that exists.
func connect(path string, wait time.Duration) (*sql.DB, error) {
	q := url.Values{
		"mode":          {"rw"}, // never makes a file: create does, whole and private
		"_busy_timeout": {strconv.FormatInt(wait.Milliseconds(), 10)},
		"_foreign_keys": {"on"},
		"_synchronous":  {"FULL"}, // in WAL mode: fsync of the log at every commit
		"_txlock":       {"immediate"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		"_pragma":       {"secure_delete(1)"}, // a removed run's secrets are overwritten
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return db, nil
}

// create makes an empty store under another name and links it into place when
// it is whole. So nobody sees half a schema, two processes that start at once
// agree on one file, and a full disk leaves nothing behind.
func create(ctx context.Context, path string, wait time.Duration) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*") // 0600
	if err != nil {
		return err
	}
	name := f.Name()
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if e := os.Remove(name + suffix); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	db, err := connect(name, wait)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = func() error {
		if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for _, q := range []string{
			schema,
			fmt.Sprintf("PRAGMA application_id = %d", application),
			fmt.Sprintf("PRAGMA user_version = %d", hakaru.StoreFormat),
		} {
			if _, err := tx.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return tx.Commit()
	}()
	if e := db.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Link(name, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync() // the name, too, is to survive a power cut
}

// check refuses what is not a store and what a newer hakaru wrote.
func (s *Store) check(ctx context.Context) error {
	var id, format int64
	if err := s.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id != application {
		return &Error{"open the store", s.path, "choose another path for the store", ErrForeign}
	}
	if err := s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&format); err != nil {
		return err
	}
	if format > hakaru.StoreFormat {
		return &Error{"open the store", s.path, "use the hakaru that wrote it or a newer one, or choose another path for the store",
			fmt.Errorf("%w: it has format %d, this hakaru reads up to %d", ErrNewer, format, hakaru.StoreFormat)}
	}
	return nil
}
