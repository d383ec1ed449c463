import { Agent } from 'node:https';
import { type ConnectionOptions, checkServerIdentity, connect } from 'node:tls';

/**
 * Connects only to a peer whose certificate passes a check. Nothing is written to a connection before.
 *
 * @param ca PEM: an authority in it must have signed the certificate for the name or address, or it contains the
 * certificate itself. Without it, a self-signed or expired certificate is accepted.
 * @param check throws an error for a wrong certificate, which it gets as DER in base64
 */
export function serviceAgent(ca: string | undefined, check: (certificate: string) => void): Agent {
  const agent = new Agent({ keepAlive: true });
  const trusted = ca?.replaceAll(/\s/g, '');
  agent.createConnection = (options, callback) => {
    const socket = connect({
      ...(options as ConnectionOptions),
      ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
      checkServerIdentity: (host, peer) =>
        trusted?.includes(peer.raw.toString('base64')) ? undefined : checkServerIdentity(host, peer),
      rejectUnauthorized: ca !== undefined,
    });
    const fail = (error: Error): void => callback?.(error, socket);
    socket.once('error', fail).once('secureConnect', () => {
      socket.off('error', fail);
      try {
        check(socket.getPeerX509Certificate()?.raw.toString('base64') ?? '');
        callback?.(null, socket);
      } catch (error) {
        socket.destroy();
        fail(error as Error);
      }
    });
    return undefined;
  };
  return agent;
}
