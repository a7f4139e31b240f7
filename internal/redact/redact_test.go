package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		// ini, my.cnf
		{"ini", "[client]\nuser = root\npassword = hunter2\nport=3306", "[client]\nuser = root\npassword = ***\nport=3306"},
		{"ini with blanks and separators", "password = a b;c&d,e \nx=1", "password = *** \nx=1"},
		{"ini quoted", `password="a \" b" # mine`, `password="***" # mine`},
		{"commented out", "# password = old\n;passwd=old", "# password = ***\n;passwd=***"},
		{"diff", "-password = old\n+password = new\n other = 1", "-password = ***\n+password = ***\n other = 1"},
		// env
		{"env", "DB_PASSWORD=x\nAWS_SECRET_ACCESS_KEY=y\nMYSQL_PWD=z\nPGPASSWORD=q\nHOME=/root", "DB_PASSWORD=***\nAWS_SECRET_ACCESS_KEY=***\nMYSQL_PWD=***\nPGPASSWORD=***\nHOME=/root"},
		{"export", "export API_TOKEN=abc", "export API_TOKEN=***"},
		{"rails", "SECRET_KEY_BASE=0123abc", "SECRET_KEY_BASE=***"},
		// yaml, json
		{"yaml", "db:\n  password: s3cret\n  host: a\n", "db:\n  password: ***\n  host: a\n"},
		{"yaml quoted", "api_key: 'a: b'", "api_key: '***'"},
		{"yaml flow", "{user: me, password: x, port: 1}", "{user: me, password: ***, port: 1}"},
		{"yaml block", "password: |\n  line1\n  line2\nother: 1\n", "password: |\n  ***\nother: 1\n"},
		{"yaml list", "- secret: x", "- secret: ***"},
		{"yaml parent", "credentials:\n  user: me", "credentials:\n  user: me"},
		{"json", `{"user":"me","password":"a\"b","apiKey":"k","n":1}`, `{"user":"me","password":"***","apiKey":"***","n":1}`},
		{"json in json", `{"body":"{\"password\":\"abc\"}"}`, `{"body":"{\"password\":\"***\"}"}`},
		{"json number", `{"pwd": 1234, "n": 1}`, `{"pwd": ***, "n": 1}`},
		{"ruby hash", `:password => "x"`, `:password => "***"`},
		// command lines
		{"flag =", "serve --password=abc,d --port 80", "serve --password=*** --port 80"},
		{"flag blank", "serve --auth-token abc --port 80", "serve --auth-token *** --port 80"},
		{"flag without a value", "mysql --password --host a", "mysql --password --host a"},
		{"flag in a sentence", "seen (by cmdline of pid 12: app --password abc)", "seen (by cmdline of pid 12: app --password ***)"},
		{"flag list", `["serve", "--password", "abc", "--port", "80"]`, `["serve", "--password", "***", "--port", "80"]`},
		{"mysql -p", "mysql -uroot -phunter2 -h db -e 'select 1'", "mysql -uroot -p*** -h db -e 'select 1'"},
		{"mysql twice", "mysqldump -pone db | mysql -ptwo db", "mysqldump -p*** db | mysql -p*** db"},
		{"mysql list", `["mariadb-admin","-psecret","ping"]`, `["mariadb-admin","-p***","ping"]`},
		{"ab's cookie", "ab -k -C session=geheim http://a/", "ab -k -C session=*** http://a/"},
		{"a quoted cookie", "curl --cookie 'session=geheim' http://a/", "curl --cookie 'session=***' http://a/"},
		{"curl", "curl -u me:geheim http://a/", "curl -u me:*** http://a/"},
		// URLs
		{"url", "postgres://app:s3c@ret@db:5432/x?sslmode=off", "postgres://app:***@db:5432/x?sslmode=off"},
		{"url without user", "redis://:pw@cache/0", "redis://:***@cache/0"},
		{"query", "GET /a?token=abc.def&x=1 HTTP/1.1", "GET /a?token=***&x=1 HTTP/1.1"},
		{"go data source", "app:pw@tcp(127.0.0.1:3306)/db", "app:***@tcp(127.0.0.1:3306)/db"},
		// headers
		{"authorization", "GET / HTTP/1.1\nAuthorization: Bearer abc.def\nHost: a", "GET / HTTP/1.1\nAuthorization: ***\nHost: a"},
		{"header in a word", `wrk -H "Authorization: Basic Zm9v" http://a/`, `wrk -H "Authorization: ***" http://a/`},
		{"header in json", `{"Authorization":"Bearer abc"}`, `{"Authorization":"***"}`},
		{"header with a key", "X-Api-Key: abc", "X-Api-Key: ***"},
		{"cookie", "Cookie: session=abc; a=b", "Cookie: ***"},
		// others
		{"redis", "requirepass foobared\nport 6379", "requirepass ***\nport 6379"},
		{"sql", "CREATE USER a IDENTIFIED BY 'x'", "CREATE USER a IDENTIFIED BY '***'"},
		{"pem", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\n***\n-----END RSA PRIVATE KEY-----"},
		{"log", `level=info msg=login password=abc, user=me`, `level=info msg=login password=***, user=me`},
		{"several on a line", "a password=x token=y b", "a password=*** token=*** b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Text(c.in)
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if again := Text(got); again != got {
				t.Errorf("twice %q\nonce  %q", again, got)
			}
		})
	}
}

// TestNotRedacted has what looks like a secret and is the very setting that is
// measured, or the place of a secret.
func TestNotRedacted(t *testing.T) {
	for _, text := range []string{
		"keepalive = 65", "keepalive_timeout 65;", "key_buffer_size = 16M", "max_keys = 100", "tokens_per_second: 12",
		"--keep-alive=true", "max_tokens = 5", "password_file = /etc/pw", "validate_password_length = 8", "default_password_lifetime = 0",
		"proxy_pass http://backend;", "fastcgi_pass unix:/run/php.sock;", "proxy_cache_key $scheme$host;", "ssl_certificate_key /etc/ssl/a.key;",
		"ssl-key = /etc/my/key.pem", "skip-password = true", "password = ${DB_PASSWORD}", "env: {PASSWORD: '{pw}'}", "primary_key = id",
		"http://127.0.0.1:8080/a", "listening on 127.0.0.1:8080", "processes=4 threads=2", "GET http://127.0.0.1:1/status",
		"innodb_buffer_pool_size=1G", "keyring: /x", "author: me", "hotkey_count=3", "compass: north", "ssh -p22 host", "bypass = 1",
		"first, second and third", "password:", "monkey=1", "Uwsgi: master process (pid: 12)", "session.token_bucket: 5",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestTextProperties: whatever stands around it, a marked secret does not
// leave, and redacting twice is redacting once.
func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		around := rapid.StringMatching(`[ -~\n]{0,40}`)
		secret := rapid.StringMatching(`[A-Za-z0-9+/$!%^*.]{0,6}GEHEIM[A-Za-z0-9+/$!%^*.]{0,6}`).Draw(t, "secret")
		form := rapid.SampledFrom([]string{"password = %\n", "DB_PASSWORD=%\n", "password: %\n", `"password": "%"` + "\n", "Authorization: Bearer %\n"}).Draw(t, "form")
		text := around.Draw(t, "before") + "\n" + strings.ReplaceAll(form, "%", secret) + around.Draw(t, "after")
		got := Text(text)
		if strings.Contains(got, "GEHEIM") {
			t.Fatalf("%q became %q", text, got)
		}
		if again := Text(got); again != got {
			t.Fatalf("once  %q\ntwice %q", got, again)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("password = x\npassword: |\n  a\n")
	f.Add("mysql -pabc \\\"password\\\":\\\"")
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if twice := Text(once); twice != once {
			t.Errorf("%q: once %q, twice %q", text, once, twice)
		}
	})
}
