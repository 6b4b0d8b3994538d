package connect_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/natstest"
)

// certificate writes a certificate for 127.0.0.1 that is its own authority, and its
// key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nats"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return cert, key
}

// Whoever has another certificate is not taken for the server, and one that wants
// TLS is not talked to without it.
func TestDialByTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	other, _ := certificate(t)
	srv := natstest.Start(t, natstest.WithConfig(fmt.Sprintf("tls: {cert_file: %q, key_file: %q}", cert, key)))
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, TLSCA: cert})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("TLS = %+v, %v", state, err)
	}
	nc.Close()
	for name, ca := range map[string]string{"another authority": other, "none": ""} {
		if _, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, TLSCA: ca}); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain := natstest.Start(t)
	for _, url := range []string{plain.URL(), strings.Replace(plain.URL(), "nats://", "tls://", 1)} {
		if _, err := connect.Dial(t.Context(), connect.Options{Servers: []string{url}, TLSCA: cert}); err == nil {
			t.Errorf("%s: connected without TLS", url)
		}
	}
}

// Within a web socket the protocol cannot be followed, and is not.
func TestDialByWebSocket(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	natstest.Start(t, natstest.WithConfig(fmt.Sprintf("websocket: {listen: %q, no_tls: true}", address)))
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{"ws://" + address}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
}
