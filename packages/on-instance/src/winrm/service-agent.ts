import { once } from 'node:events';
import { Agent } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { InstanceAddress } from '@nodepool-builder/image-builder';

/** The certificate of the peer, DER in base64, verified or not. Nothing is sent on this connection. */
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
 * Connections to who has this certificate, and to nobody else: a connection that was not checked is never written to.
 *
 * @param ca PEM; with it an authority has to have signed the certificate, for the name or address that is connected
 * to, or it has to be in there itself. Without it no more is asked: it may be signed by itself, and too old.
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
      return fail(new Error('another certificate is shown than before'));
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
