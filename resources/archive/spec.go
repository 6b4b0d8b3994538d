// Package archive is the resource type for archives that are fetched from a
// URL, unpacked into a directory, and optionally removed.
package archive

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/resource"
)

// DefaultMaxSize is the default limit of the download and of the unpacked content.
const DefaultMaxSize model.Size = 10 << 30

// Spec are the properties of an archive.
type Spec struct {
	model.Common
	URL           string            `json:"url,omitempty" jsonschema_description:"URL to fetch from, http or https; required except with absent"`
	Owner         string            `json:"owner,omitempty" jsonschema_description:"Owner of the archive, name or numeric id; required except with absent"`
	Group         string            `json:"group,omitempty" jsonschema_description:"Group, name or numeric id; required except with absent"`
	Checksum      string            `json:"checksum,omitempty" jsonschema_description:"Expected SHA-256 in hex"`
	ExtractParent string            `json:"extract_parent,omitempty" flags:"extract" jsonschema_description:"Directory to unpack into; created when missing"`
	Creates       string            `json:"creates,omitempty" jsonschema_description:"A path that unpacking creates; while it exists the archive is not unpacked again"`
	Format        string            `json:"format,omitempty" jsonschema:"enum=tar,enum=tar.gz,enum=tar.bz2,enum=tar.xz,enum=tar.zst,enum=zip" jsonschema_description:"Format of the archive; unset, the extension of the name selects it, or the content if there is no such extension"`
	Cleanup       bool              `json:"cleanup,omitempty" jsonschema_description:"Remove the archive after unpacking; needs extract_parent and creates"`
	Username      string            `json:"username,omitempty" jsonschema_description:"User for basic authentication"`
	Password      string            `json:"password,omitempty" sensitive:"true" jsonschema_description:"Password for basic authentication"`
	Headers       map[string]string `json:"headers,omitempty" short:"H" sensitive:"true" jsonschema_description:"Request headers, for example Authorization"`
	MaxSize       model.Size        `json:"max_size,omitempty" jsonschema:"default=10GiB" jsonschema_description:"The most that is downloaded, and that it may unpack to: a number of bytes, or with a unit as in 500MB and 10GiB"`
	Links         string            `json:"links,omitempty" jsonschema:"enum=keep" jsonschema_description:"keep creates symbolic links that lead out of extract_parent, as they are in the archive; unset refuses them"`
	Preserve      bool              `json:"preserve,omitempty" jsonschema_description:"Restore owners and setuid, setgid and sticky bits from the archive"`
}

// Format returns the format of a path's extension, zero if it is not the extension of an
// archive. The extension of an archive that muster cannot unpack is ErrUnsupported.
func Format(path string) (hostarchive.Format, error) {
	lower := strings.ToLower(path)
	has := func(extension string) bool { return strings.HasSuffix(lower, extension) }
	for _, format := range hostarchive.Formats() {
		if has("." + format.String()) {
			return format, nil
		}
	}
	for short, format := range map[string]hostarchive.Format{
		".tgz": hostarchive.TarGz, ".tbz": hostarchive.TarBz2, ".tbz2": hostarchive.TarBz2, ".txz": hostarchive.TarXz, ".tzst": hostarchive.TarZst,
	} {
		if has(short) {
			return format, nil
		}
	}
	if slices.ContainsFunc([]string{".rar", ".7z", ".deb", ".rpm", ".tar.lz", ".tar.z", ".cpio", ".iso", ".exe"}, has) {
		return 0, ErrUnsupported
	}

	return 0, nil
}

// ArchiveFormat returns the format by the property or the extension, zero to detect it by
// the content.
func (s *Spec) ArchiveFormat() (hostarchive.Format, error) {
	for _, format := range hostarchive.Formats() {
		if s.Format == format.String() {
			return format, nil
		}
	}

	return Format(s.Name)
}

// LinksKeep is the value of links that keeps symbolic links out of extract_parent.
const LinksKeep = "keep"

// describes reports whether the properties describe a desired state. A spec with only a name queries the
// current state.
func (s *Spec) describes() bool { return s.Owner != "" && s.Group != "" }

// minSecret is the length of the shortest part of a query that is redacted everywhere in a run: shorter parts
// are words like true.
const minSecret = 8

// Secrets returns the password, the headers and the credentials of the URL. A
// user without a password is a token.
func (s *Spec) Secrets() []model.Secret {
	var out []model.Secret
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" {
				out = append(out, model.NewSecret(text))
			}
		}
	}
	if s.Password != "" {
		out = append(out, web.BasicSecrets(s.Username, s.Password)...)
	} else {
		add(s.Username)
	}
	for _, value := range s.Headers {
		// A scheme precedes the credential: Bearer abc.
		_, credential, _ := strings.Cut(value, " ")
		add(value, credential)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		// An invalid URL may have a password anywhere.
		add(s.URL)
		return out
	}
	out = append(out, web.UserSecrets(u)...)
	add(u.RawQuery)
	for _, values := range u.Query() {
		for _, value := range values {
			if len(value) >= minSecret {
				add(value)
			}
		}
	}

	return out
}

// extensions lists the extensions of archives, for hints.
const extensions = ".tar.gz, .tgz, .tar.bz2, .tar.xz, .tar.zst, .tar or .zip"

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	s.validateName(&out)
	s.validateURL(&out)
	resource.CheckAccount(&out, s.Ensure, "owner", s.Owner)
	resource.CheckAccount(&out, s.Ensure, "group", s.Group)
	if s.Checksum != "" && !regexp.MustCompile(`^[0-9a-fA-F]{64}$`).MatchString(s.Checksum) {
		out.Property("checksum", "write the 64 hex digits that sha256sum prints", "invalid SHA-256 checksum %q", s.Checksum)
	}
	s.validateExtraction(&out)
	s.validateCredentials(&out)

	return out
}

// Warnings reports an archive that is only unpacked after its download.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	if s.Ensure != model.EnsureAbsent && s.ExtractParent != "" && s.Creates == "" {
		out.Property("extract_parent", "set creates to a path in the archive", "without `creates` %s is unpacked only after a download; an existing archive is not unpacked", s.Name)
	}

	return out
}

// CheckSum returns ErrChecksum unless a checksum is the wanted one.
func (s *Spec) CheckSum(checksum string) error {
	if want := s.wantedChecksum(); want != "" && checksum != want {
		return fmt.Errorf("%w: expected %s, got %s (correct `checksum` if this archive is the one you want)", ErrChecksum, want, checksum)
	}

	return nil
}

// wantedChecksum returns the wanted checksum in lower case, empty for any.
func (s *Spec) wantedChecksum() string { return strings.ToLower(s.Checksum) }

func (s *Spec) validateName(out *model.Problems) {
	resource.CheckPath(out, "name", "archive path", s.Name)
	if _, err := s.ArchiveFormat(); err != nil {
		out.Property("name", "end it with "+extensions+", or set format", "%s: %q", err, s.Name)
	}
	known := func(f hostarchive.Format) bool { return f.String() == s.Format }
	if s.Format != "" && !slices.ContainsFunc(hostarchive.Formats(), known) {
		out.Property("format", fmt.Sprintf("use one of %v", hostarchive.Formats()), "unknown format %q", s.Format)
	}
}

// validateURL never shows the URL: it may hold a password.
func (s *Spec) validateURL(out *model.Problems) {
	if s.URL == "" {
		if s.Ensure != model.EnsureAbsent {
			out.Property("url", "for example url: https://example.com/app.tar.gz", "`url` is required unless ensure is absent")
		}
		return
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		out.Property("url", "percent-encode special characters, such as / or @ in a password", "invalid url, it cannot be read")
		return
	case u.Scheme != "http" && u.Scheme != "https":
		out.Property("url", "begin it with http:// or https://", "the scheme of the url must be http or https, not %q", u.Scheme)
		return
	case u.Hostname() == "":
		out.Property("url", "", "the url names no host")
		return
	}
	if s.Format != "" {
		return
	}
	format, err := Format(u.Path)
	if err != nil {
		out.Property("url", "its path must end with "+extensions+", or set format", "url: %s", err)
		return
	}
	if named, err := Format(s.Name); err == nil && named != 0 && format != 0 && named != format {
		out.Property("url", "give the archive the extension of the url, or set format", "the url ends with .%s, the name with .%s", format, named)
	}
}

func (s *Spec) validateExtraction(out *model.Problems) {
	if s.ExtractParent != "" {
		resource.CheckPath(out, "extract_parent", "extract_parent", s.ExtractParent)
	}
	if s.Creates != "" {
		resource.CheckPath(out, "creates", "creates", s.Creates)
		if s.ExtractParent == "" {
			out.Property("creates", "set extract_parent, or remove creates", "`creates` requires `extract_parent`: it says what unpacking makes")
		}
	}
	if s.Links != "" && s.Links != LinksKeep {
		out.Property("links", "use links: keep, or remove it", "invalid links %q", s.Links)
	}
	if s.Cleanup && s.ExtractParent == "" {
		out.Property("cleanup", "set extract_parent, or remove cleanup", "`cleanup` requires `extract_parent`: an archive that is not unpacked is removed by ensure: absent")
	}
	if s.Cleanup && s.Creates == "" {
		out.Property("cleanup", "set creates to a path in the archive", "`cleanup` requires `creates`: without it the archive would be fetched at every run")
	}
}

// reserved are the headers that muster sets.
func reserved() []string {
	return []string{"accept-encoding", "connection", "content-length", "host", "if-range", "range", "transfer-encoding"}
}

// validateCredentials never shows values.
func (s *Spec) validateCredentials(out *model.Problems) {
	if s.Password != "" && s.Username == "" {
		out.Property("password", "set username", "`password` requires `username`")
	}
	if strings.Contains(s.Username, ":") {
		out.Property("username", "", "a username of basic authentication has no colon")
	}
	token := regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value := s.Headers[name]
		switch lower := strings.ToLower(name); {
		case !token.MatchString(name):
			out.Property("headers", "", "invalid name of a header: %q", name)
		case slices.Contains(reserved(), lower):
			out.Property("headers", "remove it", "the header %s is set by muster", name)
		case lower == "authorization" && s.Username != "":
			out.Property("headers", "keep one of them", "`username` and the header %s exclude each other", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			out.Property("headers", "", "the header %s has a line break or another control character", name)
		}
	}
}
