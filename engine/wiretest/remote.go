package wiretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate writes a self-signed certificate for those names and its key into a folder, and returns a pool that trusts it.
func Certificate(t testing.TB, folder string, names ...string) (certFile, keyFile string, trust *x509.CertPool) {
	t.Helper()
	return CertificateUntil(t, time.Now().Add(time.Hour), folder, names...)
}

// CertificateUntil is [Certificate] with an expiry.
func CertificateUntil(t testing.TB, end time.Time, folder string, names ...string) (certFile, keyFile string, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	made := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "daycared"}, NotBefore: end.Add(-2 * time.Hour),
		NotAfter: end, BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			made.IPAddresses = append(made.IPAddresses, ip)
		} else {
			made.DNSNames = append(made.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for file, block := range map[string]*pem.Block{
		keyFile: {Type: "EC PRIVATE KEY", Bytes: secret}, certFile: {Type: "CERTIFICATE", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust = x509.NewCertPool()
	if leaf, err := x509.ParseCertificate(der); err == nil {
		trust.AddCert(leaf)
	}
	return certFile, keyFile, trust
}

// Trusting is a client that trusts only that pool, and expects that name.
func Trusting(t testing.TB, trust *x509.CertPool, name string) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, ServerName: name, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
