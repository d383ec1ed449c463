import { once } from 'node:events';
import { Agent } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { InstanceAddress } from '@nodepool-builder/image-builder';

/** Reads the certificate of the peer, DER in base64, without verification. Nothing is sent on this connection. */
export async function certificateAt(address: InstanceAddress, signal: AbortSignal): Promise<string> {
  const socket = connect({ ...address, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal });
    return certificateOf(socket);
  } finally {
    socket.destroy();
  }
}

/**
 * Connects only to a peer with this certificate. Nothing is written to a connection before the check.
 *
 * @param ca PEM: an authority in it must have signed the certificate for the name or address, or it contains the
 * certificate itself. Without it, a self-signed or expired certificate is accepted.
 */
export function serviceAgent(certificate: string, ca: string | undefined): Agent {
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = (options, callback) => {
    const socket = connect({
      ...(options as ConnectionOptions),
      ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
      ...(ca !== undefined && isIn(ca, certificate) && { checkServerIdentity: () => undefined }),
      rejectUnauthorized: ca !== undefined,
    });
    const fail = (error: Error): void => callback?.(error, socket);
    socket.once('error', fail).once('secureConnect', () => {
      socket.off('error', fail);
      if (certificateOf(socket) === certificate) return callback?.(null, socket);
      socket.destroy();
      return fail(new Error('the certificate has changed'));
    });
    return undefined;
  };
  return agent;
}

function certificateOf(socket: TLSSocket): string {
  return socket.getPeerX509Certificate()?.raw.toString('base64') ?? '';
}

function isIn(ca: string, certificate: string): boolean {
  return ca.replaceAll(/\s/g, '').includes(certificate);
}
