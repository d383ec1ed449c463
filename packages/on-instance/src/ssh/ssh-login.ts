import { Socket } from 'node:net';
import { ImageError, type InstanceAddress } from '@nodepool-builder/image-builder';
import { unlessAborted } from '@nodepool-builder/image-builder/internal';
import ssh2 from 'ssh2';
import { authorityOf, type Login } from '../remote-shell.ts';
import { announcedKeys, type HostKey } from './host-key.ts';
import type { Identity } from './identity.ts';
import { SshShell } from './ssh-shell.ts';

/** Timeout from the connection to the login, in milliseconds. It is long because an emulated machine is slow. */
const HANDSHAKE_TIMEOUT = 60_000;

/** Keep-alive interval in milliseconds. A peer that is silent for three intervals counts as lost. */
const KEEP_ALIVE_INTERVAL = 10_000;

/** Maximum size in bytes of the lines that may precede the identification of an SSH server (RFC 4253, section 4.2). */
const MAX_GREETING_SIZE = 16 * 1024;

/**
 * Logs in over SSH with a private key.
 *
 * @param hostKey pins the key of the machine at the first login
 */
export function sshLogin(
  username: string,
  { privateKey, keyFile }: Pick<Identity, 'privateKey' | 'keyFile'>,
  hostKey: HostKey,
): Login {
  return {
    hostKey,
    port: 22,
    announcedKeys,
    probe: probeSsh,
    connect: async (address, signal) => {
      const client = new ssh2.Client();
      const ready = Promise.withResolvers<void>();
      const given = Promise.withResolvers<string>();
      let lastError: Error | undefined;
      client.once('ready', ready.resolve).once('error', ready.reject);
      client.once('close', () => ready.reject(new Error('the connection was closed')));
      const hostVerifier = (key: Buffer): boolean => {
        try {
          hostKey.check(key.toString('base64'));
          given.resolve(key.toString('base64'));
          return true;
        } catch (error) {
          lastError = error as Error;
          return false;
        }
      };
      try {
        client.connect({
          host: address.host,
          port: address.port,
          username,
          privateKey,
          hostVerifier,
          readyTimeout: HANDSHAKE_TIMEOUT,
          keepaliveInterval: KEEP_ALIVE_INTERVAL,
        });
        client.setNoDelay(); // requests are small, and each reply is awaited
        await unlessAborted(ready.promise, signal);
        hostKey.pinned = await given.promise;
        return new SshShell(client, `${username}@${authorityOf(address)}`);
      } catch (error) {
        client.on('error', () => {}); // the connection is abandoned
        client.destroy();
        signal.throwIfAborted();
        throw lastError ?? refused(username, address, error);
      }
    },
    describe: () => hostKey.describe(),
    hint: ({ host, port }) => `ssh -i ${keyFile} -p ${port} ${username}@${host}`,
  };
}

function refused(username: string, address: InstanceAddress, cause: unknown): ImageError {
  return new ImageError(
    'login-refused',
    `${username} cannot log in at ${authorityOf(address)}: ${(cause as Error).message}; ` +
      'the base image must install the public key that instances get, or accept the configured private-key',
    { cause },
  );
}

/**
 * Checks that an SSH server responds. An open port is not enough, because a forwarder accepts connections before the
 * instance does.
 */
export async function probeSsh(address: InstanceAddress, signal: AbortSignal): Promise<void> {
  const socket = new Socket({ signal });
  socket.connect(address.port, address.host);
  let said = '';
  for await (const chunk of socket) {
    said += String(chunk);
    if (/^SSH-/m.test(said)) return;
    if (said.length > MAX_GREETING_SIZE) break;
  }
  throw new Error(`${authorityOf(address)} does not speak SSH`);
}
