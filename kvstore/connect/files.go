package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/model"
)

// FileError reports a file that does not suit its option.
type FileError struct {
	// Option is creds, nkey, password-file, tlsca, tlscert or tlskey.
	Option, Path string
	Err          error
}

// Error returns the option, the path and the problem.
func (e *FileError) Error() string { return fmt.Sprintf("%s %s: %v", e.Option, e.Path, e.Err) }

// Unwrap returns the problem of the file.
func (e *FileError) Unwrap() error { return e.Err }

// Check returns all reasons why the options are invalid, without connecting. It returns a FileError
// for each invalid file. The client reports such a file late, never with RetryOnFailedConnect, and does
// not name it.
func (o Options) Check() (all []error) {
	b, err := o.base()
	if err == nil {
		err = model.CheckServerURLs(b.servers)
	}
	if err != nil {
		all = append(all, err)
	}
	before := len(all)
	for _, f := range []struct {
		option, path string
		check        func([]byte) error
	}{
		{"creds", o.Creds, checkCreds},
		{"nkey", o.NKey, checkSeed},
		{"password-file", o.PasswordFile, checkPassword},
		{"tlsca", o.TLSCA, checkAuthorities},
		{"tlscert", o.TLSCert, nil},
		{"tlskey", o.TLSKey, nil},
	} {
		if f.path == "" || isPipe(f.path) {
			continue
		}
		text, err := os.ReadFile(f.path)
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			err = failed.Err
		}
		if err == nil && f.check != nil {
			err = f.check(text)
		}
		if err != nil {
			all = append(all, &FileError{f.option, f.path, err})
		}
	}
	if err := o.checkCertificate(); err != nil && len(all) == before {
		all = append(all, err) // not a second error for a file
	}

	return all
}

// Exposed returns a FileError for each file with a secret that every user of the machine can read.
func (o Options) Exposed() []*FileError {
	var all []*FileError
	for _, f := range [][2]string{{"creds", o.Creds}, {"nkey", o.NKey}, {"password-file", o.PasswordFile}, {"tlskey", o.TLSKey}} {
		info, err := os.Stat(f[1])
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
			all = append(all, &FileError{f[0], f[1], fmt.Errorf("has mode %04o, so every user of this machine may read it: chmod 600 %s", info.Mode().Perm(), f[1])})
		}
	}

	return all
}

// isPipe reports whether a file can be read only once, such as the shell's <(...). Only the connection
// may read it.
func isPipe(path string) bool {
	info, err := os.Stat(path)

	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

func checkCreds(text []byte) error {
	token, err := nkeys.ParseDecoratedJWT(text)
	if err != nil || strings.Count(token, ".") != 2 || checkSeed(text) != nil {
		return errors.New("it holds no credentials (nsc generate creds writes such a file: the JWT of a user, and its seed)")
	}

	return nil
}

func checkSeed(text []byte) error {
	pair, err := nkeys.ParseDecoratedUserNKey(text)
	if err != nil {
		return errors.New("it holds no seed of a user (one begins with SU; nsc or nk -gen user writes it)")
	}
	pair.Wipe()

	return nil
}

func checkPassword(text []byte) error {
	if strings.TrimRight(string(text), "\r\n") == "" {
		return errors.New("it is empty, write the password to it")
	}

	return nil
}

func checkAuthorities(text []byte) error {
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return errors.New("it holds no certificate in PEM (a block that begins with -----BEGIN CERTIFICATE-----)")
	}

	return nil
}

func (o Options) checkCertificate() error {
	switch {
	case o.TLSCert == "" && o.TLSKey == "":
		return nil
	case o.TLSKey == "":
		return &FileError{"tlscert", o.TLSCert, errors.New("a certificate needs its key, give tlskey too")}
	case o.TLSCert == "":
		return &FileError{"tlskey", o.TLSKey, errors.New("a key needs its certificate, give tlscert too")}
	}
	if isPipe(o.TLSCert) || isPipe(o.TLSKey) {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey); err != nil {
		return &FileError{"tlscert", o.TLSCert, fmt.Errorf("not a certificate in PEM with the key in %s: %s", o.TLSKey, strings.TrimPrefix(err.Error(), "tls: "))}
	}

	return nil
}
