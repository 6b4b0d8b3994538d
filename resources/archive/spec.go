// Package archive is the resource type for archives: fetched from a URL,
// unpacked into a directory, and removed again where they are not kept.
package archive

import (
	"net/url"
	"strings"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/web"
)

// Spec are the properties of an archive.
type Spec struct {
	model.Common
	URL           string            `json:"url,omitempty" jsonschema_description:"Where it is fetched from, http or https; required except with absent"`
	Owner         string            `json:"owner,omitempty" jsonschema_description:"Name or number of the user that owns the archive; required except with absent"`
	Group         string            `json:"group,omitempty" jsonschema_description:"Name or number of its group; required except with absent"`
	Checksum      string            `json:"checksum,omitempty" jsonschema_description:"Hex SHA-256 that it must have"`
	ExtractParent string            `json:"extract_parent,omitempty" jsonschema_description:"Directory that it is unpacked into; made when it is missing"`
	Creates       string            `json:"creates,omitempty" jsonschema_description:"A path that unpacking makes; what it is there for is not unpacked again"`
	Cleanup       bool              `json:"cleanup,omitempty" jsonschema_description:"Remove the archive once it is unpacked; needs extract_parent and creates"`
	Username      string            `json:"username,omitempty" jsonschema_description:"User for basic authentication"`
	Password      string            `json:"password,omitempty" sensitive:"true" jsonschema_description:"Password for basic authentication"`
	Headers       map[string]string `json:"headers,omitempty" sensitive:"true" jsonschema_description:"Headers of the request, for example Authorization"`
	MaxSize       Size              `json:"max_size,omitempty" jsonschema:"default=10GiB" jsonschema_description:"The most that it may unpack to: a number of bytes, or with a unit as in 500MB and 10GiB"`
	Preserve      bool              `json:"preserve,omitempty" jsonschema_description:"Restore owners and setuid, setgid and sticky bits as they are in the archive"`
}

// Format returns the format that the extension of a path says. An unknown one is
// ErrUnsupported.
func Format(path string) (hostarchive.Format, error) {
	lower := strings.ToLower(path)
	switch {
	case strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".tgz"):
		return hostarchive.TarGz, nil
	case strings.HasSuffix(lower, ".tar"):
		return hostarchive.Tar, nil
	case strings.HasSuffix(lower, ".zip"):
		return hostarchive.Zip, nil
	default:
		return 0, ErrUnsupported
	}
}

// describes reports whether the resource says what must be there. A spec with a name
// alone is a question about the machine.
func (s *Spec) describes() bool { return s.Owner != "" && s.Group != "" }

// minSecret is how long a part of a query must be to be redacted wherever it
// turns up in a run: shorter ones are words like true.
const minSecret = 8

// Secrets are the password, the headers, and what of the URL is no address. A
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
		// The type of a credential stands before it: Bearer abc.
		_, credential, _ := strings.Cut(value, " ")
		add(value, credential)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		// What cannot be read may have a password anywhere in it.
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
