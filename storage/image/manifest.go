package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"

	muster "github.com/muster-hpc/muster"
)

const maxManifestBytes = 32 << 20

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// EncodeManifest is the manifest as it lies on disk.
func EncodeManifest(m *muster.Image) ([]byte, error) {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	return append(data, '\n'), nil
}

// DecodeManifest reads a manifest. It returns ECorrupt for anything that a
// builder of this format did not write: unknown fields, a wrong ID, file names
// that leave the directory, sizes that cannot be.
func DecodeManifest(data []byte) (*muster.Image, error) {
	bad := func(format string, args ...any) (*muster.Image, error) {
		return nil, muster.Errorf(muster.ECorrupt, "the manifest is not valid: "+format, args...).Because(muster.ReasonImageDamaged).
			WithHint("remove the image and build it again")
	}
	if len(data) > maxManifestBytes {
		return bad("%d bytes are too many", len(data))
	}
	var head struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(data, &head) == nil && head.Format != Format {
		return nil, muster.Errorf(muster.ECorrupt, "the image has format %d; this Muster reads format %d", head.Format, Format).Because(muster.ReasonOtherVersion).
			WithHint("build the image again with this version")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var m muster.Image
	if err := dec.Decode(&m); err != nil {
		return bad("%v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad("something follows it")
	}
	switch {
	case !hexDigest.MatchString(m.ID.Hex()) || string(m.ID) != "sha256:"+m.ID.Hex():
		return bad("%q is not a content ID", clip(string(m.ID)))
	case !recipeName.MatchString(m.Name):
		return bad("%q is not a name", clip(m.Name))
	case m.Uncompressed < 0 || m.Requires.Memory < 0:
		return bad("a negative size")
	}
	seen := map[muster.FileRole]bool{}
	names := map[string]bool{}
	for _, f := range m.Files {
		if f.Name == "" || f.Name != path.Base(f.Name) || f.Name == "." || f.Name == ".." || f.Name == manifestFile || names[f.Name] {
			return bad("file name %q", clip(f.Name))
		}
		if f.Size < 0 || !hexDigest.MatchString(f.SHA256) || seen[f.Role] {
			return bad("file %s", f.Name)
		}
		seen[f.Role], names[f.Name] = true, true
	}
	if !seen[muster.FileRoot] {
		return bad("no root file system")
	}
	if ContentID(&m) != m.ID {
		return bad("its content ID does not follow from what is in it")
	}
	return &m, nil
}
