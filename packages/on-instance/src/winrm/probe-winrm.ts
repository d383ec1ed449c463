import type { InstanceAddress } from '@nodepool-builder/image-builder';
import { authorityOf } from '@nodepool-builder/image-builder/module-kit';
import got from 'got';

/** Status for a request without credentials. Windows responds with 503 before the service is up. */
const UNAUTHORIZED = 401;

/**
 * A {@link Probe} for a WinRM service. It sends no credentials, so it does not verify the certificate.
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
