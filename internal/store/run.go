package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hakaru"
)

// Last is the name by which Find gives the newest run.
const Last = "last"

// letters are those of an id: no i, l, o, 0 and 1, which look alike. An id
// begins with one of the first 23, so that it is never read as a number.
const letters = "abcdefghjkmnpqrstuvwxyz23456789"

const idLength = 5 // 21 million; a store holds thousands

// newID draws an id. Taking a random byte modulo prefers some letters by a
// tenth, which does not matter for a name.
func newID() string {
	b := make([]byte, idLength)
	rand.Read(b) // never returns an error: see its documentation
	for i, x := range b {
		n := len(letters)
		if i == 0 {
			n -= len("23456789")
		}
		b[i] = letters[int(x)%n]
	}
	return string(b)
}

// NewRun stores a run under a new short id and returns the id; r.ID is ignored.
func (s *Store) NewRun(ctx context.Context, r hakaru.Run) (string, error) {
	for range 100 {
		r.ID = newID()
		body, err := packJSON(r)
		if err != nil {
			return "", fmt.Errorf("store run %s: %w", r.Name, err)
		}
		_, err = s.db.ExecContext(ctx,
			"INSERT INTO run (id, name, started, ended, state, body) VALUES (?, ?, ?, ?, ?, ?)",
			r.ID, r.Name, stamp(r.Started), stampEnd(r.Ended), string(r.State), body)
		if duplicate(err) {
			continue
		}
		if err != nil {
			return "", explain("write a new run to", s.path, err)
		}
		return r.ID, nil
	}
	return "", &Error{"write a new run to", s.path, "remove old runs", errors.New("no free id after 100 draws")}
}

// Find returns the run whose id is, or alone begins with, the given text, or
// the newest for Last. It returns ErrNotFound or an *AmbiguousError otherwise.
func (s *Store) Find(ctx context.Context, text string) (hakaru.Run, error) {
	if text == Last {
		var body []byte
		err := s.db.QueryRowContext(ctx, "SELECT body FROM run ORDER BY n DESC LIMIT 1").Scan(&body)
		if errors.Is(err, sql.ErrNoRows) {
			return hakaru.Run{}, &Error{"find the last run in", s.path, "`hakaru run FILE` makes one; another store is named by --store", fmt.Errorf("%w: there is no run yet", ErrNotFound)}
		}
		if err != nil {
			return hakaru.Run{}, explain("find the last run in", s.path, err)
		}
		return s.decodeRun(text, body)
	}
	if text == "" || strings.Trim(text, letters) != "" {
		return hakaru.Run{}, s.missing(text)
	}
	// The text consists of letters only: nothing for GLOB to interpret.
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM run WHERE id GLOB ? || '*' ORDER BY n DESC", text)
	if err != nil {
		return hakaru.Run{}, explain("find run "+text+" in", s.path, err)
	}
	ids, err := scanAll(rows, func(id *string) []any { return []any{id} })
	if err != nil {
		return hakaru.Run{}, explain("find run "+text+" in", s.path, err)
	}
	switch {
	case len(ids) == 0:
		return hakaru.Run{}, s.missing(text)
	case len(ids) > 1:
		return hakaru.Run{}, &AmbiguousError{text, ids}
	}
	var body []byte
	err = s.db.QueryRowContext(ctx, "SELECT body FROM run WHERE id = ?", ids[0]).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) { // removed meanwhile
		return hakaru.Run{}, s.missing(text)
	}
	if err != nil {
		return hakaru.Run{}, explain("read run "+ids[0]+" from", s.path, err)
	}
	return s.decodeRun(ids[0], body)
}

func (s *Store) missing(id string) error {
	return &Error{"find run " + id + " in", s.path, "`hakaru list` shows the runs", ErrNotFound}
}

func (s *Store) decodeRun(id string, body []byte) (hakaru.Run, error) {
	var r hakaru.Run
	if err := unpackJSON(body, &r); err != nil {
		return r, &Error{"read run " + id + " from", s.path, adviceDamaged, err}
	}
	return r, nil
}

// Update changes a stored run: change gets the run as stored and alters it in
// place. Reading and writing are one transaction. The id stays.
func (s *Store) Update(ctx context.Context, id string, change func(*hakaru.Run)) error {
	doing := "update run " + id + " in"
	tx, err := s.db.BeginTx(ctx, nil) // immediate: no other writer in between
	if err != nil {
		return explain(doing, s.path, err)
	}
	defer tx.Rollback() // after Commit: says ErrTxDone, nothing to do
	var body []byte
	err = tx.QueryRowContext(ctx, "SELECT body FROM run WHERE id = ?", id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return s.missing(id)
	}
	if err != nil {
		return explain(doing, s.path, err)
	}
	r, err := s.decodeRun(id, body)
	if err != nil {
		return err
	}
	change(&r)
	r.ID = id
	if body, err = packJSON(r); err != nil {
		return fmt.Errorf("update run %s: %w", id, err)
	}
	_, err = tx.ExecContext(ctx, "UPDATE run SET name = ?, started = ?, ended = ?, state = ?, body = ? WHERE id = ?",
		r.Name, stamp(r.Started), stampEnd(r.Ended), string(r.State), body, id)
	if err == nil {
		err = tx.Commit()
	}
	return explain(doing, s.path, err)
}

// listQuery counts trials from indexes that hold all it needs, so that it does
// not read their bodies.
const listQuery = `
	SELECT id, name, started, ended, state,
		(SELECT count(*) FROM trial WHERE run = n),
		(SELECT count(*) FROM trial WHERE run = n AND void = 1)
	FROM run ORDER BY n DESC`

// Runs returns a line for each run, newest first.
func (s *Store) Runs(ctx context.Context) ([]hakaru.RunInfo, error) {
	rows, err := s.db.QueryContext(ctx, listQuery)
	if err != nil {
		return nil, explain("list the runs in", s.path, err)
	}
	type line struct {
		hakaru.RunInfo
		started string
		ended   sql.NullString
	}
	lines, err := scanAll(rows, func(l *line) []any {
		return []any{&l.ID, &l.Name, &l.started, &l.ended, &l.State, &l.Trials, &l.Void}
	})
	if err != nil {
		return nil, explain("list the runs in", s.path, err)
	}
	runs := make([]hakaru.RunInfo, 0, len(lines))
	for _, l := range lines {
		if l.Started, err = time.Parse(time.RFC3339Nano, l.started); err != nil {
			return nil, &Error{"list the runs in", s.path, adviceDamaged, err}
		}
		if l.ended.Valid {
			t, err := time.Parse(time.RFC3339Nano, l.ended.String)
			if err != nil {
				return nil, &Error{"list the runs in", s.path, adviceDamaged, err}
			}
			l.Ended = &t
		}
		runs = append(runs, l.RunInfo)
	}
	return runs, nil
}

// Remove deletes a run with its trials and outputs, and overwrites their bytes.
func (s *Store) Remove(ctx context.Context, id string) error {
	res, err := s.db.ExecContext(ctx, "DELETE FROM run WHERE id = ?", id)
	if err != nil {
		return explain("remove run "+id+" from", s.path, err)
	}
	if n, err := res.RowsAffected(); err != nil {
		return explain("remove run "+id+" from", s.path, err)
	} else if n == 0 {
		return s.missing(id)
	}
	// The log still holds the old pages: fold it in. A reader may hold it
	// back, then the last process to close the store does so.
	var busy, log, done int
	err = s.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done)
	return explain("remove run "+id+" from", s.path, err)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func stampEnd(t *time.Time) any {
	if t == nil {
		return nil
	}
	return stamp(*t)
}

// packJSON gives a value as compressed JSON.
func packJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return deflate(b)
}

func unpackJSON(b []byte, v any) error {
	b, err := inflate(b)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// scanAll reads all rows and closes them.
func scanAll[T any](rows *sql.Rows, into func(*T) []any) (all []T, err error) {
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		var x T
		if err := rows.Scan(into(&x)...); err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, rows.Err()
}
