package archive_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/webtest"
)

// content is large enough for several reads.
func content(version string) string { return strings.Repeat(version+" 0123456789abcdef\n", 30_000) }

func TestDownload(t *testing.T) {
	x := newTrial(t, webtest.Start(t))
	x.server.Put("/a.tar.gz", webtest.Text(content("1")))
	x.spec.Checksum = strings.ToUpper(sum(content("1")))
	check(t, x.download())
	x.holds(content("1"))
	entry, err := x.env.Host.Look(x.spec.Name)
	check(t, err)
	if entry.Mode != 0o640 {
		t.Errorf("its mode is %o", entry.Mode)
	}
	r := x.server.Requests()[0]
	if r.Method != http.MethodGet || r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Range") != "" {
		t.Errorf("the request is %v %v", r.Method, r.Header)
	}
	for _, want := range []string{"msg=downloading url=" + x.spec.URL, "percent=100", "msg=downloaded"} {
		if !strings.Contains(x.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, x.log.String())
		}
	}
}

// TestAuthentication is "Authentication", with the certificate of the server.
func TestAuthentication(t *testing.T) {
	for name, set := range map[string]func(x *trial){
		"properties": func(x *trial) { x.spec.Username, x.spec.Password = "joe", "hunt/er2" },
		"url":        func(x *trial) { x.spec.URL = strings.Replace(x.spec.URL, "://", "://joe:hunt%2Fer2@", 1) },
		"header": func(x *trial) {
			x.spec.Headers = map[string]string{"authorization": "Basic am9lOmh1bnQvZXIy", "x-more": "too"}
		},
		"properties before url": func(x *trial) {
			x.spec.URL = strings.Replace(x.spec.URL, "://", "://other:wrong@", 1)
			x.spec.Username, x.spec.Password = "joe", "hunt/er2"
		},
	} {
		x := newTrial(t, webtest.StartTLS(t, webtest.WithAuth("joe", "hunt/er2")))
		x.provider = archive.NewHTTP(archive.HTTPOptions{Backoff: time.Millisecond, Client: web.NewClient(web.Options{TLS: x.server.TLS()})})
		x.server.Put("/a.tar.gz", webtest.Text("x"))
		if err := x.download(); err == nil || !strings.HasSuffix(err.Error(), "the server answered 401 Unauthorized (check `username`, `password` and `headers`)") || len(x.server.Requests()) != 1 {
			t.Errorf("%s: without credentials: %v after %d requests", name, err, len(x.server.Requests()))
		}
		set(x)
		check(t, x.download())
		x.holds("x")
		if more := x.server.Requests()[1].Header.Get("X-More"); (more == "too") != (name == "header") {
			t.Errorf("%s: the header is %q", name, more)
		}
	}
}

// TestResume breaks transfers and checks the next requests.
func TestResume(t *testing.T) {
	old, now := content("1"), content("2")
	date := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	dated := webtest.Text(old)
	dated.ETag, dated.Modified = "", date
	fresh := dated
	fresh.Modified = time.Now()
	weak := webtest.Text(old)
	weak.ETag, weak.Modified = "W/"+weak.ETag, date
	bare := dated
	bare.Modified = time.Time{}
	for name, c := range map[string]struct {
		file    webtest.File
		options []webtest.Option
		next    []webtest.Answer
		swap    bool
		want    string
		ranges  []string
	}{
		"where it broke off":           {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000)}, false, old, []string{"", "bytes=1000-"}},
		"again and again":              {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.Cut(500), webtest.Cut(1)}, false, old, []string{"", "bytes=1000-", "bytes=1500-", "bytes=1501-"}},
		"by the date":                  {dated, nil, []webtest.Answer{webtest.Cut(1000)}, false, old, []string{"", "bytes=1000-"}},
		"not by a date of now":         {fresh, nil, []webtest.Answer{webtest.Cut(1000)}, false, old, []string{"", ""}},
		"not by a weak tag":            {weak, nil, []webtest.Answer{webtest.Cut(1000)}, false, old, []string{"", ""}},
		"not by nothing":               {bare, nil, []webtest.Answer{webtest.Cut(1000)}, false, old, []string{"", ""}},
		"another content by then":      {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000)}, true, now, []string{"", "bytes=1000-"}},
		"a server without ranges":      {webtest.Text(old), []webtest.Option{webtest.WithoutRanges()}, []webtest.Answer{webtest.Cut(1000)}, false, old, []string{"", "bytes=1000-"}},
		"a server that says so":        {webtest.Text(old), nil, []webtest.Answer{declined, webtest.Plain()}, false, old, []string{"", ""}},
		"a server that is busy":        {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.Status(503)}, false, old, []string{"", "bytes=1000-", "bytes=1000-"}},
		"the range is refused":         {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.Status(416)}, false, old, []string{"", "bytes=1000-", ""}},
		"the condition is refused":     {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.Status(412)}, false, old, []string{"", "bytes=1000-", ""}},
		"another range":                {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, "x", "Content-Range", "bytes 999-999/1000")}, false, old, []string{"", "bytes=1000-", ""}},
		"another length":               {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, "x", "Content-Range", "bytes 1000-1000/1001")}, false, old, []string{"", "bytes=1000-", ""}},
		"another tag, all the same":    {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, "x", "ETag", `"other"`, "Content-Range", "bytes 1000-540999/541000")}, false, old, []string{"", "bytes=1000-", ""}},
		"no tag, all the same":         {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, old[1000:], "Content-Range", "bytes 1000-569999/570000")}, false, old, []string{"", "bytes=1000-", ""}},
		"no date, all the same":        {dated, nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, old[1000:], "Content-Range", "bytes 1000-569999/570000")}, false, old, []string{"", "bytes=1000-", ""}},
		"another date, all the same":   {dated, nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, old[1000:], "Last-Modified", date.Add(time.Second).Format(http.TimeFormat), "Content-Range", "bytes 1000-569999/570000")}, false, old, []string{"", "bytes=1000-", ""}},
		"a range that is none":         {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.With(206, "x", "Content-Range", "lines 1")}, false, old, []string{"", "bytes=1000-", ""}},
		"broken off before it began":   {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(0)}, false, old, []string{"", ""}},
		"broken off after a new start": {webtest.Text(old), nil, []webtest.Answer{webtest.Cut(1000), webtest.Status(416), webtest.Cut(700)}, false, old, []string{"", "bytes=1000-", "", "bytes=700-"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, webtest.Start(t, c.options...))
			x.server.Put("/a.tar.gz", c.file)
			x.server.Next("/a.tar.gz", c.next...)
			if c.swap {
				x.server.Next("/a.tar.gz", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
					w.Header().Set("ETag", `"now"`)
					http.ServeContent(w, r, "", time.Time{}, strings.NewReader(now))
				})
			}
			check(t, x.download())
			x.holds(c.want)
			if got := x.ranges(); !slices.Equal(got, c.ranges) {
				t.Errorf("asked for were %q, not %q", got, c.ranges)
			}
			for _, r := range x.server.Requests() {
				if (r.Header.Get("Range") == "") != (r.Header.Get("If-Range") == "") {
					t.Errorf("a range without a condition: %v", r.Header)
				}
			}
		})
	}
}

// declined breaks off and has no ranges.
func declined(w http.ResponseWriter, r *http.Request, file http.Handler) {
	webtest.Cut(1000)(declining{w}, r, file)
}

type declining struct{ http.ResponseWriter }

func (d declining) WriteHeader(code int) {
	d.Header().Set("Accept-Ranges", "none")
	d.ResponseWriter.WriteHeader(code)
}

// Unwrap is for the response controller.
func (d declining) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// TestRetry has failures that pass, and some that do not.
func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		next     []webtest.Answer
		requests int
		want     string
	}{
		"500":                {[]webtest.Answer{webtest.Status(500)}, 2, ""},
		"502":                {[]webtest.Answer{webtest.Status(502)}, 2, ""},
		"503, said how long": {[]webtest.Answer{webtest.Status(503, "Retry-After", "0")}, 2, ""},
		"504":                {[]webtest.Answer{webtest.Status(504)}, 2, ""},
		"408":                {[]webtest.Answer{webtest.Status(408)}, 2, ""},
		"429":                {[]webtest.Answer{webtest.Status(429)}, 2, ""},
		"the connection":     {[]webtest.Answer{webtest.Cut(0), webtest.Cut(0)}, 3, ""},
		"five times":         {slices.Repeat([]webtest.Answer{webtest.Status(500)}, 5), 5, "the server answered 500 Internal Server Error (the server fails; the next run tries again)"},
		"cut at one place":   {slices.Repeat([]webtest.Answer{declined}, 9), 5, "the download was cut short, 1000 of 570000 bytes were received: unexpected EOF"},
		"404":                {[]webtest.Answer{webtest.Status(404)}, 1, "the server answered 404 Not Found (check `url`)"},
		"403":                {[]webtest.Answer{webtest.Status(403)}, 1, "the server answered 403 Forbidden (check `username`, `password` and `headers`)"},
		"204":                {[]webtest.Answer{webtest.Status(204)}, 1, "the server answered 204 No Content"},
		"206 unasked":        {[]webtest.Answer{webtest.With(206, "x", "Content-Range", "bytes 0-0/9")}, 1, "the server answered 206 Partial Content"},
		"another scheme":     {[]webtest.Answer{webtest.Status(302, "Location", "ftp://127.0.0.1/a.tar.gz")}, 1, "redirected to a URL that is not http or https"},
		"no host":            {[]webtest.Answer{webtest.Status(307, "Location", "http:///a.tar.gz")}, 1, "redirected to a URL that is not http or https"},
		"no URL":             {[]webtest.Answer{webtest.Status(302, "Location", "http://[bad/")}, 1, "redirected to a URL that cannot be parsed"},
		"no Location":        {[]webtest.Answer{webtest.Status(302)}, 1, "the server answered 302 Found"},
		"410 on the way":     {[]webtest.Answer{webtest.Cut(1000), webtest.Status(410)}, 2, "the server answered 410 Gone (check `url`)"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, webtest.Start(t))
			x.server.Put("/a.tar.gz", webtest.Text(content("1")))
			x.server.Next("/a.tar.gz", c.next...)
			err := x.download()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "":
				x.holds(content("1"))
			case err == nil || err.Error() != x.spec.URL+": "+c.want:
				t.Errorf("the error is %v, not %q", err, c.want)
			default:
				x.holds("")
			}
			if n := len(x.server.Requests()); n != c.requests {
				t.Errorf("there were %d requests, not %d", n, c.requests)
			}
		})
	}
}

// TestTimeout has a server that hangs, from the beginning and later.
func TestTimeout(t *testing.T) {
	for name, after := range map[string]int64{"from the beginning": 0, "later": 1000} {
		x := newTrial(t, webtest.Start(t))
		x.server.Put("/a.tar.gz", webtest.Text(content("1")))
		x.server.Next("/a.tar.gz", slices.Concat([]webtest.Answer{webtest.Stall(after)}, slices.Repeat([]webtest.Answer{webtest.Stall(0)}, 9))...)
		x.spec.Timeout = model.Duration(300 * time.Millisecond)
		if err := x.download(); err == nil || !strings.Contains(err.Error(), "timed out after 300ms without progress") {
			t.Errorf("%s: the error is %v", name, err)
		}
		x.holds("")
	}
	// What each connection repeats is no progress.
	x := newTrial(t, webtest.Start(t, webtest.WithoutRanges()))
	x.server.Put("/a.tar.gz", webtest.Text(content("1")))
	x.server.Next("/a.tar.gz", slices.Repeat([]webtest.Answer{webtest.Stall(1000)}, 9)...)
	x.spec.Timeout = model.Duration(300 * time.Millisecond)
	if err := x.download(); err == nil || !strings.Contains(err.Error(), "timed out after 300ms without progress") {
		t.Errorf("again and again: the error is %v", err)
	}
	x.holds("")
	if n := len(x.server.Requests()); n > 3 {
		t.Errorf("in the time for two connections that hang there were %d", n)
	}
	x = newTrial(t, webtest.Start(t))
	x.server.Put("/a.tar.gz", webtest.Text(content("1")))
	x.server.Next("/a.tar.gz", webtest.Stall(1000))
	x.spec.Timeout = model.Duration(6 * time.Second)
	check(t, x.download())
	x.holds(content("1"))
	if got := x.ranges(); !slices.Equal(got, []string{"", "bytes=1000-"}) {
		t.Errorf("a connection that hangs is not given up: %q", got)
	}
}

// TestCancel has a run that is broken off while a server hangs.
func TestCancel(t *testing.T) {
	x := newTrial(t, webtest.Start(t))
	x.server.Put("/a.tar.gz", webtest.Text(content("1")))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("interrupted")
	x.server.Next("/a.tar.gz", func(w http.ResponseWriter, r *http.Request, file http.Handler) {
		cancel(stopped)
		webtest.Stall(1000)(w, r, file)
	})
	err := x.provider.Download(ctx, x.env, x.spec, hosttest.Attrs(t, 0o640), func(string) error { return nil })
	if !errors.Is(err, stopped) {
		t.Errorf("the error is %v", err)
	}
	x.holds("")
}

// TestErrorHandling is the table of that name of the download.
func TestErrorHandling(t *testing.T) {
	x := newTrial(t, webtest.Start(t))
	x.server.Put("/a.tar.gz", webtest.Text("new"))
	check(t, os.WriteFile(x.spec.Name, []byte("old"), 0o640))
	kept := func(name string) {
		t.Helper()
		got, err := os.ReadFile(x.spec.Name)
		entries, _ := os.ReadDir(x.dir)
		if err != nil || string(got) != "old" || len(entries) != 1 {
			t.Errorf("%s: the archive is %q, %v, among %v", name, got, err, entries)
		}
	}
	x.server.Next("/a.tar.gz", webtest.Status(404))
	if err := x.download(); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("not 200: %v", err)
	}
	kept("not 200")
	x.spec.Checksum = sum("other")
	if err := x.download(); !errors.Is(err, archive.ErrChecksum) || !strings.Contains(err.Error(), "expected "+sum("other")+", got "+sum("new")) {
		t.Errorf("the checksum: %v", err)
	}
	kept("the checksum")
	x.spec.Checksum = ""
	refused := errors.New("not to be placed")
	if err := x.provider.Download(t.Context(), x.env, x.spec, hosttest.Attrs(t, 0o640), func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("what is not to be placed: %v", err)
	}
	kept("what is not to be placed")
	x.spec.Name = filepath.Join(x.dir, "none", "a.tar.gz")
	if err := x.download(); !errors.Is(err, files.ErrNoParent) {
		t.Errorf("a write that fails: %v", err)
	}
	x.spec.Name = filepath.Join(x.dir, "full")
	check(t, os.MkdirAll(filepath.Join(x.spec.Name, "something"), 0o755))
	if err := x.download(); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a rename that fails: %v", err)
	}
	if entries, _ := os.ReadDir(x.dir); len(entries) != 2 {
		t.Errorf("a rename that failed left %v", entries)
	}
}

// said answers with exactly these bytes.
func said(text string) webtest.Answer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = buffered.WriteString(text)
		_ = buffered.Flush()
	}
}

// TestNoCredentialsAnywhere has everything that can go wrong, with credentials
// in every place they can be.
func TestNoCredentialsAnywhere(t *testing.T) {
	secrets := []string{"hunter2", "s3cret-token", "h3ader-token", "joe:"}
	gone, other := loopback.Address(t).String(), webtest.Start(t)
	other.Put("/a.tar.gz", webtest.Text("other"))
	untrusted := webtest.StartTLS(t)
	for name, c := range map[string]struct {
		next webtest.Answer
		base string
		want string
	}{
		"refused":         {nil, "http://" + gone, "connection refused"},
		"no such host":    {nil, "http://no-such-host.invalid", "no-such-host.invalid"},
		"untrusted":       {nil, untrusted.URL, "certificate"},
		"not found":       {webtest.Status(404), "", "404"},
		"a bad redirect":  {webtest.Status(302, "Location", "http://joe:hunter2@[bad/?token=s3cret-token"), "", "redirected to a URL that cannot be parsed"},
		"a loop":          {nil, "loop", "more than 10 redirects"},
		"elsewhere":       {webtest.Status(302, "Location", "http://joe:hunter2@"+gone+"/?token=s3cret-token"), "", "connection refused"},
		"elsewhere, well": {webtest.Status(302, "Location", other.URL+"/a.tar.gz"), "", ""},
		"a strange word":  {said("HTTP/1.1 hunter2\r\n\r\n"), "", "the server does not speak HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, webtest.Start(t))
			base := c.base
			if c.base == "" || c.base == "loop" {
				base = x.server.URL
			}
			if c.next != nil {
				x.server.Next("/a.tar.gz", slices.Repeat([]webtest.Answer{c.next}, 5)...)
			}
			if c.base == "loop" {
				x.server.Next("/a.tar.gz", slices.Repeat([]webtest.Answer{webtest.Status(302, "Location", "/a.tar.gz?token=s3cret-token")}, 20)...)
			}
			x.spec.URL = strings.Replace(base, "://", "://joe:hunter2@", 1) + "/a.tar.gz?token=s3cret-token"
			x.spec.Headers = map[string]string{"Private-Token": "h3ader-token"}
			err := x.download()
			text := x.log.String()
			switch {
			case c.want == "":
				check(t, err)
				x.holds("other")
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("the error is %v, without %q", err, c.want)
			default:
				text += err.Error()
			}
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%q is shown:\n%s", secret, text)
				}
			}
		})
	}
	for _, r := range other.Requests() {
		if r.Header.Get("Authorization")+r.Header.Get("Private-Token")+r.Header.Get("Referer") != "" {
			t.Errorf("credentials went to another host: %v", r.Header)
		}
	}
	if len(other.Requests()) != 1 {
		t.Errorf("the other host had %d requests", len(other.Requests()))
	}
}
