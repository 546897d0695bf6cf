package whatsapptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"

	"go.mau.fi/whatsmeow/types"
)

// relyingParty is the site whose passkey it is.
const relyingParty = "web.whatsapp.com"

// Passkey is the passkey of the account, in the owner's browser (W3C Web Authentication, section 6.3.3).
type Passkey struct {
	id  []byte
	key *ecdsa.PrivateKey
}

func newPasskey() *Passkey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // only a broken source of randomness fails
	}
	return &Passkey{id: random(16), key: key}
}

// clientData is what a browser adds to a challenge.
type clientData struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
	Origin    string `json:"origin"`
}

// Signs answers what a site asks, as the browser does after the owner's finger.
func (p *Passkey) Signs(asked *types.WebAuthnPublicKey) (*types.WebAuthnResponse, error) {
	data, err := json.Marshal(clientData{
		"webauthn.get", base64.RawURLEncoding.EncodeToString(asked.Challenge), "https://" + relyingParty,
	})
	if err != nil {
		return nil, err
	}
	site := sha256.Sum256([]byte(asked.RelyingPartID))
	const presentAndVerified = 0x05
	seen := binary.BigEndian.AppendUint32(append(site[:], presentAndVerified), 1)
	signature, err := ecdsa.SignASN1(rand.Reader, p.key, signed(seen, data))
	if err != nil {
		return nil, err
	}
	return &types.WebAuthnResponse{
		ID: base64.RawURLEncoding.EncodeToString(p.id), RawID: p.id, Type: "public-key",
		Response: types.WebAuthnResponseData{ClientDataJSON: data, AuthenticatorData: seen, Signature: signature},
	}, nil
}

// asks is what the site asks.
func (p *Passkey) asks(challenge []byte) []byte {
	asked, err := json.Marshal(&types.WebAuthnPublicKey{
		Challenge: challenge, Timeout: 60_000, RelyingPartID: relyingParty, UserVerification: "required",
		AllowCredentials: []types.AllowedCredential{{ID: p.id, Type: "public-key", Transports: []string{"internal", "hybrid"}}},
	})
	if err != nil {
		panic(err) // it is ours
	}
	return asked
}

// verify checks an answer as the site does.
func (p *Passkey) verify(challenge, answer []byte) error {
	var r types.WebAuthnResponse
	var data clientData
	if err := errors.Join(json.Unmarshal(answer, &r), json.Unmarshal(r.Response.ClientDataJSON, &data)); err != nil {
		return err
	}
	switch {
	case string(r.RawID) != string(p.id):
		return errors.New("it is another passkey")
	case data.Type != "webauthn.get" || data.Challenge != base64.RawURLEncoding.EncodeToString(challenge):
		return errors.New("it answers another challenge")
	case !ecdsa.VerifyASN1(&p.key.PublicKey, signed(r.Response.AuthenticatorData, r.Response.ClientDataJSON), r.Response.Signature):
		return errors.New("it is not signed by the passkey")
	}
	return nil
}

// signed is what a passkey signs.
func signed(seen, data []byte) []byte {
	hash := sha256.Sum256(data)
	all := sha256.Sum256(join(seen, hash[:]))
	return all[:]
}

// SignsJSON is [Passkey.Signs] for a request that was told as JSON, as a page in a browser takes it.
func (p *Passkey) SignsJSON(asked string) (string, error) {
	var request types.WebAuthnPublicKey
	if err := json.Unmarshal([]byte(asked), &request); err != nil {
		return "", err
	}
	response, err := p.Signs(&request)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(response)
	return string(text), err
}
