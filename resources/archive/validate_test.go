package archive_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// good are valid properties, with what else is given; nil takes one away.
func good(more typetest.Properties) typetest.Properties {
	p := typetest.Properties{"name": "/tmp/app.tar.gz", "url": "https://example.com/app.tar.gz", "owner": "root", "group": "root"}
	for key, value := range more {
		if p[key] = value; value == nil {
			delete(p, key)
		}
	}

	return p
}

func decode(p typetest.Properties) (*resource.Resource, error) {
	r, problems := resource.Decode(archiveType(), typetest.Value(p), model.Position{})

	return r, problems.Err()
}

func TestValidate(t *testing.T) {
	const pair = "extract_parent"
	for name, more := range map[string]typetest.Properties{
		"the least":              nil,
		"http":                   {"url": "http://example.com/app.tar.gz"},
		".tgz for .tar.gz":       {"url": "https://example.com/app.tgz"},
		".tar.gz for .tgz":       {"name": "/tmp/app.tgz"},
		".tar":                   {"name": "/tmp/app.tar", "url": "https://example.com/x.tar"},
		".zip":                   {"name": "/tmp/app.zip", "url": "https://example.com/x.zip"},
		"capitals":               {"name": "/tmp/APP.ZIP", "url": "https://example.com/x.zip"},
		"a query":                {"url": "https://example.com/app.tar.gz?token=abcdefgh#part"},
		"a port and a user":      {"url": "https://joe:hunter2@example.com:8443/app.tar.gz"},
		"absent, only a name":    {"ensure": "absent", "url": nil, "owner": nil, "group": nil},
		"a checksum":             {"checksum": strings.Repeat("aF", 32)},
		"extraction":             {pair: "/opt"},
		"extraction and creates": {pair: "/opt", "creates": "/opt/app"},
		"everything":             {pair: "/opt", "creates": "/opt/app", "cleanup": true, "username": "joe", "password": "hunter2", "headers": typetest.Properties{"X-A": "b\tc"}, "max_size": "1GB", "preserve": true},
		"a token as a header":    {"headers": typetest.Properties{"Authorization": "Bearer abc"}},
		"a user who is a token":  {"username": "ghp_token"},
	} {
		if _, err := decode(good(more)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestValidateProblems has "Required Properties", "URL Validation", the
// requirements of cleanup, and what else cannot be meant.
func TestValidateProblems(t *testing.T) {
	for name, c := range map[string]struct {
		more typetest.Properties
		want string
	}{
		"no url":                           {typetest.Properties{"url": nil}, "`url` is required unless ensure is absent"},
		"no owner":                         {typetest.Properties{"owner": nil}, "`owner` is required unless ensure is absent"},
		"no group":                         {typetest.Properties{"group": nil}, "`group` is required unless ensure is absent"},
		"an owner out of range":            {typetest.Properties{"owner": "4294967295"}, `invalid owner "4294967295"`},
		"no url at all":                    {typetest.Properties{"url": "https://exa mple.com/app.tar.gz"}, "invalid url, it cannot be read (percent-encode"},
		"another scheme":                   {typetest.Properties{"url": "ftp://example.com/app.tar.gz"}, `the scheme of the url must be http or https, not "ftp"`},
		"no scheme":                        {typetest.Properties{"url": "example.com/app.tar.gz"}, `the scheme of the url must be http or https, not ""`},
		"no host":                          {typetest.Properties{"url": "https:///app.tar.gz"}, "the url names no host"},
		"a url of nothing known":           {typetest.Properties{"url": "https://example.com/app.rar"}, "url: archive type not supported (its path must end with .tar.gz, .tgz, .tar.bz2, .tar.xz, .tar.zst, .tar or .zip, or set format)"},
		"an unknown format":                {typetest.Properties{"format": "rar"}, "rar"},
		"another extension":                {typetest.Properties{"url": "https://example.com/app.zip"}, "the url ends with .zip, the name with .tar.gz"},
		"tar for tar.gz":                   {typetest.Properties{"url": "https://example.com/app.tar"}, "the url ends with .tar, the name with .tar.gz"},
		"a name of nothing known":          {typetest.Properties{"name": "/tmp/app.7z"}, `archive type not supported: "/tmp/app.7z"`},
		"a relative name":                  {typetest.Properties{"name": "app.tar.gz"}, `archive path must be absolute: "app.tar.gz"`},
		"a name that is not clean":         {typetest.Properties{"name": "/tmp/../app.tar.gz"}, "archive path must be clean"},
		"a short checksum":                 {typetest.Properties{"checksum": "a1b2c3d4"}, `invalid SHA-256 checksum "a1b2c3d4" (write the 64 hex digits`},
		"a checksum that is no hex":        {typetest.Properties{"checksum": strings.Repeat("xy", 32)}, "invalid SHA-256 checksum"},
		"a relative extract_parent":        {typetest.Properties{"extract_parent": "opt"}, `extract_parent must be absolute: "opt"`},
		"a relative creates":               {typetest.Properties{"extract_parent": "/opt", "creates": "app"}, `creates must be absolute: "app"`},
		"creates without extract_parent":   {typetest.Properties{"creates": "/opt/app"}, "`creates` requires `extract_parent`"},
		"cleanup without extract_parent":   {typetest.Properties{"cleanup": true}, "`cleanup` requires `extract_parent`"},
		"a path beside a url with a query": {typetest.Properties{"url": "https://example.com/app.tar.gz?v=1", "extract_parent": "/opt", "creates": "/opt/app/."}, `"/opt/app/." (write it as /opt/app)`},
		"cleanup without creates":          {typetest.Properties{"cleanup": true, "extract_parent": "/opt"}, "`cleanup` requires `creates`"},
		"a password without a user":        {typetest.Properties{"password": "hunter2"}, "`password` requires `username`"},
		"a user with a colon":              {typetest.Properties{"username": "a:b"}, "a username of basic authentication has no colon"},
		"two credentials":                  {typetest.Properties{"username": "joe", "headers": typetest.Properties{"authorization": "x"}}, "`username` and the header authorization exclude each other"},
		"a header that is no name":         {typetest.Properties{"headers": typetest.Properties{"X Y": "z"}}, `invalid name of a header: "X Y"`},
		"a header that breaks out":         {typetest.Properties{"headers": typetest.Properties{"X-Y": "z\r\nHost: other"}}, "the header X-Y has a line break"},
		"a header of muster's own":         {typetest.Properties{"headers": typetest.Properties{"Range": "bytes=1-"}}, "the header Range is set by muster"},
		"a size of nothing":                {typetest.Properties{"max_size": "0"}, `invalid size "0"`},
		"a size of words":                  {typetest.Properties{"max_size": "much"}, `invalid size "much", write a number of bytes`},
		"an ensure of no archive":          {typetest.Properties{"ensure": "directory"}, `invalid ensure "directory"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(good(c.more))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestProblemsHoldNoCredentials has properties that are wrong and secret.
func TestProblemsHoldNoCredentials(t *testing.T) {
	for _, more := range []typetest.Properties{
		{"url": "ftp://joe:hunter2@example.com/app.tar.gz"},
		{"url": "https://joe:hun%ter2@example.com/app.tar.gz"},
		{"url": "https://joe:hunter2@example.com/app.exe?token=s3cret-token"},
		{"headers": typetest.Properties{"X": "hunter2\n"}, "username": "joe", "password": "s3cret-token", "checksum": "hunter2"},
	} {
		_, err := decode(good(more))
		if err == nil {
			t.Fatalf("%v is taken", more)
		}
		for _, secret := range []string{"hunter2", "hun%ter2", "s3cret-token"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q is in %v", secret, err)
			}
		}
	}
}

// TestSecrets has what of the properties is never shown.
func TestSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		more typetest.Properties
		want []string
	}{
		"nothing":           {nil, nil},
		"a password":        {typetest.Properties{"username": "joe", "password": "hunter2"}, []string{"am9lOmh1bnRlcjI=", "hunter2"}},
		"a user alone":      {typetest.Properties{"username": "ghp_token"}, []string{"ghp_token"}},
		"headers":           {typetest.Properties{"headers": typetest.Properties{"Authorization": "Bearer abc"}}, []string{"Bearer abc", "abc"}},
		"a user in the url": {typetest.Properties{"url": "https://joe:hunt%2Fer2@example.com/app.tar.gz"}, []string{"am9lOmh1bnQvZXIy", "hunt/er2", "joe:hunt%2Fer2"}},
		"a token there":     {typetest.Properties{"url": "https://ghp_token@example.com/app.tar.gz"}, []string{"ghp_token"}},
		"a query":           {typetest.Properties{"url": "https://example.com/app.tar.gz?raw=true&token=abcd%2Fefgh"}, []string{"abcd/efgh", "raw=true&token=abcd%2Fefgh"}},
	} {
		r, err := decode(good(c.more))
		check(t, err)
		var got []string
		for _, s := range r.Secrets {
			if s.Reveal() != "" {
				got = append(got, s.Reveal())
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) || r.Sensitive() != (len(c.want) > 0) {
			t.Errorf("%s: they are %q, not %q", name, got, c.want)
		}
	}
}

// TestFormat is "Supported Archive Formats".
func TestFormat(t *testing.T) {
	for path, want := range map[string]hostarchive.Format{
		"/a.tar.gz": hostarchive.TarGz, "/a.tgz": hostarchive.TarGz, "/a.tar": hostarchive.Tar, "/a.zip": hostarchive.Zip, "/A.TGZ": hostarchive.TarGz,
		"/a.tar.bz2": hostarchive.TarBz2, "/a.tbz2": hostarchive.TarBz2, "/a.tar.xz": hostarchive.TarXz, "/a.txz": hostarchive.TarXz, "/a.tar.zst": hostarchive.TarZst,
		"/a": 0, "/latest": 0, "/a.gz": 0, "/tar.gz/a": 0, "": 0,
	} {
		if got, err := archive.Format(path); got != want || err != nil {
			t.Errorf("%s is %v: %v", path, got, err)
		}
	}
	for _, path := range []string{"/a.rar", "/a.7z", "/a.DEB"} {
		if _, err := archive.Format(path); !errors.Is(err, archive.ErrUnsupported) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRelations(t *testing.T) {
	for name, c := range map[string]struct {
		more            typetest.Properties
		provides, needs []string
	}{
		"kept":   {nil, []string{"path:/tmp/app.tar.gz"}, []string{"path:/tmp"}},
		"absent": {typetest.Properties{"ensure": "absent"}, []string{"emptied:/tmp"}, nil},
		"extracted": {typetest.Properties{"extract_parent": "/opt/app", "creates": "/opt/app/bin/x", "owner": "app", "group": "app"},
			[]string{"path:/tmp/app.tar.gz", "path:/opt/app", "path:/opt/app/bin/x"}, []string{"path:/tmp", "user:app", "path:/etc/passwd", "group:app", "path:/etc/group", "path:/opt/app", "path:/opt"}},
		"cleaned up": {typetest.Properties{"name": "/tmp/app.zip", "url": "https://example.com/app.zip", "extract_parent": "/opt", "creates": "/opt/x", "cleanup": true},
			[]string{"path:/opt", "path:/opt/x"}, []string{"path:/tmp", "path:/opt"}},
	} {
		r, err := decode(good(c.more))
		check(t, err)
		if got := r.Type.Relations(r.Spec); !slices.Equal(got.Provides, resource.Provides(c.provides...)) || !slices.Equal(got.Needs, resource.Needs(c.needs...)) {
			t.Errorf("%s: it provides %v and needs %v", name, got.Provides, got.Needs)
		}
	}
}

// TestWarnings covers an archive that may never be unpacked.
func TestWarnings(t *testing.T) {
	for want, specs := range map[int][]archive.Spec{
		0: {{}, {ExtractParent: "/opt", Creates: "/opt/a"}, {Common: model.Common{Ensure: model.EnsureAbsent}, ExtractParent: "/opt"}},
		1: {{ExtractParent: "/opt"}},
	} {
		for _, spec := range specs {
			if got := spec.Warnings(); len(got) != want {
				t.Errorf("%+v: %v", spec, got)
			}
		}
	}
}
