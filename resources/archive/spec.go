// Package archive is the resource type for archives that are fetched from a
// URL, unpacked into a directory, and optionally removed.
package archive

import (
	"net/url"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/web"
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
