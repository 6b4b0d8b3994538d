package assign

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/archive"
)

// File is a file, directory or link.
type File struct {
	Name string       `json:"name"`
	Kind archive.Kind `json:"kind"`
	// Mode is the permissions of a file or directory in octal digits.
	Mode string `json:"mode,omitempty"`
	// Size and Digest are the size and digest of the content of a file, and of a hard link to it.
	Size   int64  `json:"size"`
	Digest string `json:"digest,omitempty"`
	// Target is the target of a link.
	Target string `json:"target,omitempty"`
	// Text is the content of a text file. Omitted is the reason why the content is missing.
	Text    string `json:"-"`
	Omitted string `json:"-"`
}

// Default modes of files and directories, which are not shown.
const (
	fileMode      = "0644"
	directoryMode = "0755"
)

func newFile(f archive.File, kept map[string]text) File {
	out := File{Name: f.Name, Kind: f.Kind, Size: f.Size, Target: f.Target}
	if f.Kind != archive.KindLink {
		out.Mode = fmt.Sprintf("%04o", f.Mode)
	}
	if f.Digest != "" {
		out.Digest = model.DigestPrefix + f.Digest
	}
	if f.Kind == archive.KindFile {
		out.Text, out.Omitted = kept[f.Name].text, kept[f.Name].omitted
	}

	return out
}

// manifestFile returns the file of a manifest without a bundle.
func manifestFile(manifest string) File {
	return File{
		Name: model.BundleManifest, Kind: archive.KindFile, Mode: fileMode, Size: int64(len(manifest)),
		Digest: model.DigestOf([]byte(manifest)), Text: manifest,
	}
}

// String describes the file in one line.
func (f File) String() string {
	words := []string{quoted(f.Name), f.size()}
	switch f.Kind {
	case archive.KindLink:
		words = []string{quoted(f.Name) + " -> " + quoted(f.Target)}
	case archive.KindDirectory:
		words = []string{quoted(f.Name + "/")}
	case archive.KindHardLink:
		words = append(words, f.kind())
	}
	return strings.Join(append(words, f.notes()...), ", ")
}

// size describes the size of the content.
func (f File) size() string {
	if f.Size == 1 {
		return "1 byte"
	}

	return fmt.Sprintf("%d bytes", f.Size)
}

// kind returns the kind of the file, empty for a regular file.
func (f File) kind() string {
	switch f.Kind {
	case archive.KindFile:
		return ""
	case archive.KindHardLink:
		return string(f.Kind) + " to " + quoted(f.Target)
	default:
		return string(f.Kind)
	}
}

// notes describes unusual properties of a file.
func (f File) notes() []string {
	var out []string
	usual := fileMode
	if f.Kind == archive.KindDirectory {
		usual = directoryMode
	}
	if f.Mode != "" && f.Mode != usual {
		out = append(out, "mode "+f.Mode)
	}
	if f.Omitted != "" {
		out = append(out, f.Omitted)
	}

	return out
}

// body returns the text that a diff compares.
func (f File) body() string {
	switch {
	case f.Kind == archive.KindLink:
		return "-> " + quoted(f.Target) + "\n"
	case f.Kind == archive.KindHardLink || f.Omitted != "":
		return f.Digest + ", " + f.size() + "\n"
	default:
		return f.Text
	}
}

// Argument returns the name quoted for a shell.
func (f File) Argument() string {
	name := f.Name
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}

	return name
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-+@%="

// quoted returns a name, quoted if it is ambiguous.
func quoted(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, " ,(") {
		return q
	}

	return name
}
