package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// image is an image of static programs, and of nothing else.
type image struct {
	name       string
	entrypoint string
	programs   map[string]string // by their paths in the image, the files they are
	links      []string          // other names of the entrypoint
}

// write writes the image as an OCI layout in a tar file, the form that
// containerd imports.
func (i image) write(file string) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("failed to make image %s: %w", i.name, err)
	}
	l := &layout{}
	l.dir("blobs/sha256")
	layerAt := l.blob("application/vnd.oci.image.layer.v1.tar", layer)
	config := l.blobJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": []string{i.entrypoint},
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
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.name}
	l.fileJSON("index.json", map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	l.fileJSON("oci-layout", map[string]any{"imageLayoutVersion": "1.0.0"})
	content, err := l.close()
	if err != nil {
		return fmt.Errorf("failed to make image %s: %w", i.name, err)
	}
	return os.WriteFile(file, content, 0o644)
}

// layer is the image's file system.
func (i image) layer() ([]byte, error) {
	l := &layout{}
	for _, dir := range []string{"bin", "etc", "root", "state", "tmp", "usr/bin", "usr/sbin"} {
		l.dir(dir)
	}
	l.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	for _, at := range slices.Sorted(maps.Keys(i.programs)) {
		content, err := os.ReadFile(i.programs[at])
		if err != nil {
			return nil, err
		}
		l.file(strings.TrimPrefix(at, "/"), 0o755, content)
	}
	for _, link := range i.links {
		l.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(link, "/"), Linkname: i.entrypoint, Mode: 0o777}, nil)
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
