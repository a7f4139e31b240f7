package proof

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"

	"hakaru"
	"hakaru/internal/redact"
)

// sqlValue asks a MySQL or MariaDB server for one value, over a connection of
// its own.
func sqlValue(ctx context.Context, on Subject, ask hakaru.Ask) Evidence {
	statement := on.Names.Expand(ask.Argument)
	source := "sql: " + redact.Text(shorten(statement))
	if strings.TrimSpace(on.SQL) == "" {
		return never("it is not known where to ask; under the service write sql: user:password@tcp(host:port)/", source)
	}
	config, err := dataSource(on.SQL)
	if err != nil {
		return never(err.Error(), source)
	}
	if err := on.foreign(serverAddress(config)); err != nil {
		return unreadable(source, err)
	}
	value, err := selectOne(ctx, config, statement)
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered {
		return never(whySQL(config, err).Error(), source)
	}
	if err != nil {
		return unreadable(source, whySQL(config, err))
	}
	return byServer(value, source, ask)
}

// dataSource reads a data source name. The slash before the name of a database,
// which is of no use here, may be left out.
func dataSource(text string) (*mysql.Config, error) {
	config, err := mysql.ParseDSN(text)
	if err != nil && !strings.HasSuffix(text, "/") {
		if again, second := mysql.ParseDSN(text + "/"); second == nil {
			config, err = again, nil
		}
	}
	if err != nil {
		// What the driver says may quote a part of the text, the password too.
		return nil, errors.New("the data source cannot be read: write sql: user:password@tcp(host:port)/ or user@unix(/path)/")
	}
	// The context of an ask ends earlier; these are for what it does not reach.
	config.Timeout, config.ReadTimeout, config.WriteTimeout = 2*Limit, 2*Limit, 2*Limit
	config.Logger = &mysql.NopLogger{} // what it would log comes back as an error
	return config, nil
}

// serverAddress is the server in the form of a readiness address.
func serverAddress(config *mysql.Config) string {
	if config.Net == "unix" {
		return "unix:" + config.Addr
	}
	return "tcp://" + config.Addr
}

// selectOne gives the value of the first row: of its only column, or of the
// second of two, as SHOW VARIABLES has them.
func selectOne(ctx context.Context, config *mysql.Config, statement string) (value string, err error) {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(-1)
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	if len(columns) > 2 {
		return "", fmt.Errorf("the statement gives %d columns; one value is wanted", len(columns))
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return "", err
		}
		return "", errors.New("the statement gives no row")
	}
	fields := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range fields {
		into[i] = &fields[i]
	}
	if err := rows.Scan(into...); err != nil {
		return "", err
	}
	last := fields[len(fields)-1]
	if !last.Valid {
		return "NULL", nil
	}
	return last.String, nil
}

// Numbers of server errors (mariadb.com/kb/en/mariadb-error-codes).
const (
	accessDenied    = 1045
	accessNoPlugin  = 1698 // access denied where another way than a password is wanted
	unknownVariable = 1193
)

// whySQL says what to do about an error.
func whySQL(config *mysql.Config, err error) error {
	if server, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch server.Number {
		case accessDenied, accessNoPlugin:
			sent := "no password was sent"
			if config.Passwd != "" {
				sent = "with the password given"
			}
			return fmt.Errorf("access denied for user %s (%s): under the service write sql: user:password@%s(%s)/", config.User, sent, config.Net, config.Addr)
		case unknownVariable:
			return fmt.Errorf("the server has no such variable: %s", server.Message)
		}
		return fmt.Errorf("the server says: %s", redact.Text(server.Message))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s(%s) did not answer within %s", config.Net, config.Addr, Limit)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Errorf("no server answers at %s(%s): %w; under the service sql: user:password@tcp(host:port)/ or user@unix(/path)/ says where it is", config.Net, config.Addr, dial.Err)
	}
	return fmt.Errorf("ask %s(%s): %w", config.Net, config.Addr, err)
}
