package facts

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// release is the platform according to os-release(5).
type release struct {
	platform, family, version, codename string
}

// readRelease reads the first existing path.
func readRelease(paths ...string) (release, error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			return parseRelease(string(text)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return release{}, err
		}
	}

	return release{}, errors.New("no os-release file found: the platform is unknown")
}

// parseRelease reads an os-release file. Some platforms have another name in
// facts, as in CCM and gopsutil.
func parseRelease(text string) release {
	values := assignments(text)
	id := strings.ToLower(values["ID"])
	r := release{platform: id, family: familyOf(id, values["ID_LIKE"]), version: values["VERSION_ID"], codename: values["VERSION_CODENAME"]}
	if r.version == "" {
		r.version = values["BUILD_ID"]
	}
	switch id {
	case "rhel":
		r.platform = "redhat"
	case "ol":
		r.platform = "oracle"
	case "amzn":
		r.platform = "amazon"
	}

	return r
}

// familyOf returns the family of an ID, else of the first of its likes that has
// one. Other platforms are their own family.
func familyOf(id, likes string) string {
	for _, name := range append([]string{id}, strings.Fields(strings.ToLower(likes))...) {
		switch {
		case name == "debian" || name == "ubuntu" || name == "raspbian":
			return "debian"
		case name == "rhel" || name == "centos" || name == "rocky" || name == "almalinux" || name == "ol" || name == "amzn":
			return "rhel"
		case name == "fedora":
			return "fedora"
		case name == "suse" || name == "sles" || name == "sled" || strings.HasPrefix(name, "opensuse"):
			return "suse"
		case name == "arch" || name == "alpine" || name == "gentoo":
			return name
		}
	}

	return id
}

// assignments reads lines of NAME=value with shell quotes.
func assignments(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			values[name] = unquote(value)
		}
	}

	return values
}

func unquote(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return value
	}
	inner := value[1 : len(value)-1]
	switch value[0] {
	case '\'':
		return inner
	case '"':
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(inner)
	default:
		return value
	}
}
