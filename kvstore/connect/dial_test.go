package connect_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/natstest"
)

func TestDialTellsOfTheConnection(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	status := make(chan connect.Status, 100)
	nc, err := connect.Dial(t.Context(), connect.Options{
		Servers: []string{"nats://127.0.0.1:1", srv.URL()}, Name: "test", InboxPrefix: "_INBOX_web01", OnStatus: func(s connect.Status) { status <- s },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if s := <-status; !s.Connected || s.Server != srv.URL() || s.Err != nil {
		t.Errorf("status = %+v", s)
	}
	if !strings.HasPrefix(nc.NewInbox(), "_INBOX_web01.") || nc.Opts.Name != "test" || nc.Opts.MaxReconnect != -1 {
		t.Errorf("options = %+v", nc.Opts)
	}
	if err := nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	if s := <-status; s.Connected || !s.Own || s.Err != nil {
		t.Errorf("status = %+v, want an end of its own", s)
	}
	for s := range status {
		if s.Connected {
			break
		}
	}
	srv.Stop()
	if s := <-status; s.Connected || s.Own || !strings.Contains(s.Server, srv.URL()) {
		t.Errorf("status = %+v, want disconnected", s)
	}
	srv.Start(t)
	for {
		if s := <-status; s.Connected {
			break
		}
	}
	// A connection that is closed is not lost.
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	nc.Close()
	kvtest.Receive(t, closed)
	if len(status) > 0 {
		t.Errorf("status = %+v after the connection was closed", <-status)
	}
}

func TestDialWithoutAServer(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	srv.Stop()
	o := connect.Options{Servers: []string{strings.Replace(srv.URL(), "//", "//bob:secret@", 1)}}
	_, err := connect.Dial(t.Context(), o)
	if !errors.Is(err, connect.ErrConnect) || !strings.Contains(err.Error(), srv.URL()) || strings.Contains(err.Error(), "secret") {
		t.Errorf("dial = %v", err)
	}
	o.RetryOnFailedConnect = true
	connected := make(chan connect.Status, 100)
	o.OnStatus = func(s connect.Status) { connected <- s }
	nc, err := connect.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	srv.Start(t)
	for {
		select {
		case s := <-connected:
			if s.Connected {
				return
			}
		case <-time.After(kvtest.Deadline):
			t.Fatal("never connected")
		}
	}
}

func TestDialByNKey(t *testing.T) {
	t.Parallel()
	user := kvtest.KeyPair(t, nkeys.CreateUser)
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "node.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	srv := natstest.Start(t, natstest.WithConfig("authorization: {users: [{nkey: "+kvtest.Public(t, user)+"}]}"))
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, NKey: file})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if _, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}}); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("dial without it = %v", err)
	}
}

// A password may come through a pipe, as from a shell's <(...). A pipe can be read once.
func TestDialByAPasswordInAPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("secret\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	srv := natstest.Start(t, natstest.WithConfig("authorization: {users: [{user: joe, password: secret}]}"))
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, User: "joe", PasswordFile: fmt.Sprintf("/proc/self/fd/%d", r.Fd())})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestDialRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	dir := t.TempDir()
	garbage, missing := filepath.Join(dir, "garbage"), filepath.Join(dir, "missing")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	seed, err := kvtest.KeyPair(t, nkeys.CreateUser).Seed()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, text := range map[string][]byte{"empty": nil, "seed": seed} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string]connect.Options{
		"creds empty":     {Creds: files["empty"]},
		"creds garbage":   {Creds: garbage},
		"creds of a seed": {Creds: files["seed"]},
		"creds directory": {Creds: dir},
		"nkey empty":      {NKey: files["empty"]},
		"password empty":  {User: "a", PasswordFile: files["empty"]},
		"password a dir":  {User: "a", PasswordFile: dir},
		"ca empty":        {TLSCA: files["empty"]},
		"cert alone":      {TLSCert: garbage},
		"key alone":       {TLSKey: garbage},
		"no host":         {Servers: []string{"nats://"}},
		"colons":          {Servers: []string{":::"}},
		"a space":         {Servers: []string{srv.URL(), "nats://x y"}},
		"a scheme":        {Servers: []string{strings.Replace(srv.URL(), "nats:", "tsl:", 1)}},
		"creds missing":   {Creds: missing},
		"nkey missing":    {NKey: missing},
		"nkey garbage":    {NKey: garbage},
		"ca missing":      {TLSCA: missing},
		"ca garbage":      {TLSCA: garbage},
		"cert missing":    {TLSCert: missing, TLSKey: garbage},
		"cert garbage":    {TLSCert: garbage, TLSKey: garbage},
		"url":             {Servers: []string{"nats://[::1"}},
		"unknown context": {Context: "no-such-context"},
	} {
		if o.Servers == nil {
			o.Servers = []string{srv.URL()}
		}
		// Also where a server that is away would be waited for.
		o.RetryOnFailedConnect = true
		nc, err := connect.Dial(t.Context(), o)
		if !errors.Is(err, connect.ErrConnect) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			nc.Close()
		}
	}
}

// Contexts are found by the environment, so these are not parallel.
func TestDialByContext(t *testing.T) {
	srv := natstest.Start(t, natstest.WithConfig("authorization: {users: [{user: bob, password: secret}]}"))
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "nats", file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("context/fleet.json", `{"url":"`+srv.URL()+`","user":"bob","password":"secret"}`)
	write("context/away.json", `{"url":"nats://127.0.0.1:1","user":"bob","password":"secret"}`)
	write("context/bad.json", `{`)
	dial := func(o connect.Options) error {
		nc, err := connect.Dial(t.Context(), o)
		if err == nil {
			nc.Close()
		}

		return err
	}
	if err := dial(connect.Options{Context: "fleet"}); err != nil {
		t.Errorf("by context: %v", err)
	}
	if err := dial(connect.Options{Context: "away", Servers: []string{srv.URL()}}); err != nil {
		t.Errorf("server beside a context: %v", err)
	}
	if err := dial(connect.Options{Context: "none"}); !errors.Is(err, connect.ErrConnect) || !strings.Contains(err.Error(), "fleet") {
		t.Errorf("unknown context: %v, want those known in it", err)
	}
	if err := dial(connect.Options{Context: "bad"}); !errors.Is(err, connect.ErrConnect) {
		t.Errorf("bad context: %v", err)
	}
	write("context.txt", "fleet")
	if err := dial(connect.Options{}); err != nil {
		t.Errorf("by the selected context: %v", err)
	}
	// A server named alone has nothing to do with the selected context.
	if err := dial(connect.Options{Servers: []string{srv.URL()}}); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("by server alone: %v", err)
	}
}

// TestDialLeavesAHungServer: Dial tries each of several servers for 2 s, because one may accept connections and send
// nothing. It tries a single server, and all servers after none answered, for 5 s.
func TestDialLeavesAHungServer(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	hung := func() string {
		l := kvtest.Must(t, func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
		t.Cleanup(func() { _ = l.Close() })
		return "nats://" + l.Addr().String()
	}
	refusing := "nats://" + loopback.Address(t).String()
	for name, c := range map[string]struct {
		options connect.Options
		want    time.Duration
	}{
		"one":      {connect.Options{Servers: []string{srv.URL()}}, 5 * time.Second},
		"hung":     {connect.Options{Servers: []string{hung(), srv.URL(), hung()}}, 2 * time.Second},
		"one text": {connect.Options{Servers: []string{hung() + "," + srv.URL()}}, 2 * time.Second},
		"slow":     {connect.Options{Servers: []string{srv.HangOnce(t), refusing}}, 5 * time.Second},
		"lasting":  {connect.Options{Servers: []string{srv.URL(), refusing}, OnStatus: func(connect.Status) {}}, 5 * time.Second},
		"chosen":   {connect.Options{Servers: []string{srv.URL(), refusing}, Timeout: time.Second}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc, err := connect.Dial(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if got := nc.Opts.Timeout; got != c.want {
				t.Errorf("each server is tried for %s, want %s", got, c.want)
			}
		})
	}
}
