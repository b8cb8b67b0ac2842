package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	authorizedKeys = "/root/.ssh/authorized_keys"
	privateKey     = "/root/.ssh/id_rsa"
	sshPort        = "22"
)

// sshd does what the real one does in a worker of an MPI job: it lets in whoever
// has a key that is authorized, and runs what they ask for. Its own key is new
// at each start.
func sshd(ctx context.Context) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	host, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: authorize}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", ":"+sshPort)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			if err := serve(ctx, conn, config); err != nil {
				fmt.Println("sshd:", err)
			}
		}()
	}
}

func authorize(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	content, err := os.ReadFile(authorizedKeys)
	if err != nil {
		return nil, err
	}
	for len(bytes.TrimSpace(content)) > 0 {
		authorized, _, _, rest, err := ssh.ParseAuthorizedKey(content)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(authorized.Marshal(), key.Marshal()) && conn.User() == "root" {
			return &ssh.Permissions{}, nil
		}
		content = rest
	}
	return nil, errors.New("this key is not authorized")
}

func serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) error {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return err
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions are served")
			continue
		}
		channel, asked, err := offered.Accept()
		if err != nil {
			return err
		}
		go session(ctx, channel, asked)
	}
	return nil
}

// session runs one command. There is no shell: it is split at blanks.
func session(ctx context.Context, channel ssh.Channel, asked <-chan *ssh.Request) {
	defer channel.Close()
	for request := range asked {
		var command struct{ Line string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		fmt.Println("sshd: runs", command.Line)
		words := strings.Fields(command.Line)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
		// As over real ssh, nothing of the pod's environment gets there.
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/root", "USER=root"}
		status := struct{ Code uint32 }{}
		if err := cmd.Run(); err != nil {
			status.Code = 255
			if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() > 0 {
				status.Code = uint32(cmd.ProcessState.ExitCode())
			}
			fmt.Println("sshd:", err)
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(&status))
		return
	}
}
