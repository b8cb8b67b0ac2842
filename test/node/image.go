package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
)

// writeImage writes an image of one static program as an OCI layout in a tar
// file, the form that containerd imports. The program is at /<as>, which is the
// entrypoint, and under the other names.
func writeImage(file, name, program, as string, links ...string) error {
	layer, err := layerOf(program, as, links)
	if err != nil {
		return fmt.Errorf("failed to make an image of %s: %w", program, err)
	}
	l := &layout{}
	l.dir("blobs/sha256")
	layerAt := l.blob("application/vnd.oci.image.layer.v1.tar", layer)
	config := l.blobJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": []string{"/" + as},
			"Env":        []string{"PATH=/usr/sbin:/usr/bin:/bin"},
		},
		// An uncompressed layer's digest is the one of its content.
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerAt.Digest}},
	})
	manifest := l.blobJSON("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.manifest.v1+json",
		"config":        config,
		"layers":        []descriptor{layerAt},
	})
	manifest.Annotations = map[string]string{"io.containerd.image.name": name}
	l.fileJSON("index.json", map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	l.fileJSON("oci-layout", map[string]any{"imageLayoutVersion": "1.0.0"})
	content, err := l.close()
	if err != nil {
		return fmt.Errorf("failed to make an image of %s: %w", program, err)
	}
	return os.WriteFile(file, content, 0o644)
}

// layerOf is the image's file system.
func layerOf(program, as string, links []string) ([]byte, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	l := &layout{}
	for _, dir := range []string{"etc", "root", "state", "tmp", "usr/bin", "usr/sbin"} {
		l.dir(dir)
	}
	l.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	l.file(as, 0o755, content)
	for _, link := range links {
		l.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(link, "/"), Linkname: "/" + as, Mode: 0o777}, nil)
	}
	return l.close()
}

// descriptor refers to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// layout writes a tar file; the first error is kept.
type layout struct {
	buffer bytes.Buffer
	writer *tar.Writer
	err    error
}

func (l *layout) add(header *tar.Header, content []byte) {
	if l.writer == nil {
		l.writer = tar.NewWriter(&l.buffer)
	}
	if l.err == nil {
		l.err = l.writer.WriteHeader(header)
	}
	if l.err == nil {
		_, l.err = l.writer.Write(content)
	}
}

// dir adds a folder, with those it is in.
func (l *layout) dir(name string) {
	if parent := path.Dir(name); parent != "." {
		l.dir(parent)
	}
	l.add(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, nil)
}

func (l *layout) file(name string, mode int64, content []byte) {
	l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content)
}

func (l *layout) fileJSON(name string, content any) {
	text, err := json.Marshal(content)
	if l.err == nil {
		l.err = err
	}
	l.file(name, 0o644, text)
}

func (l *layout) blob(mediaType string, content []byte) descriptor {
	digest := sha256.Sum256(content)
	name := hex.EncodeToString(digest[:])
	l.file("blobs/sha256/"+name, 0o644, content)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: len(content)}
}

func (l *layout) blobJSON(mediaType string, content any) descriptor {
	text, err := json.Marshal(content)
	if l.err == nil {
		l.err = err
	}
	return l.blob(mediaType, text)
}

func (l *layout) close() ([]byte, error) {
	if l.err == nil {
		l.err = l.writer.Close()
	}
	return l.buffer.Bytes(), l.err
}
