import type { InstanceAddress } from '@nodepool-builder/image-builder';
import { authorityOf } from '@nodepool-builder/image-builder/module-kit';
import got from 'got';

/** What the service asks who has not said who they are. Windows answers 503 in its stead before it is up. */
const UNAUTHORIZED = 401;

/**
 * Whether a WinRM service answers: a {@link Probe}. It is told nothing, so its certificate does not matter yet.
 */
export async function probeWinrm(address: InstanceAddress, signal: AbortSignal): Promise<void> {
  const authority = authorityOf(address);
  const { statusCode } = await got.post(`https://${authority}/wsman`, {
    headers: { 'content-type': 'application/soap+xml;charset=UTF-8' },
    https: { rejectUnauthorized: false },
    signal,
    throwHttpErrors: false,
    followRedirect: false,
    retry: { limit: 0 },
  });
  if (statusCode !== UNAUTHORIZED) throw new Error(`${authority} answers with HTTP ${statusCode}`);
}
