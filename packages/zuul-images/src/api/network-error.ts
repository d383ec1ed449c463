import { ZuulError } from './zuul-error.ts';

/** What OpenSSL and Node call a certificate that is not to be trusted. */
const CERTIFICATE_FAULT = /^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA)/;

/** The error of a request that got no answer. `request` names the API, the method and the path. */
export function networkError(request: string, error: unknown): ZuulError {
  // the errors of got carry the whole request, its token included: only what is beneath is kept
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
  const code = codeOf(error) ?? codeOf(cause) ?? 'an unknown fault';
  if (code === 'ERR_TOO_MANY_REDIRECTS') {
    return new ZuulError('redirected', `${request}: it redirects in a circle; correct the URL`);
  }
  const reason = cause === undefined || cause.message === '' ? code : cause.message;
  if (CERTIFICATE_FAULT.test(code)) {
    return new ZuulError(
      'certificate-untrusted',
      `${request}: the certificate is not trusted: ${reason}; name the authority that signed it, or mend it`,
      { cause },
    );
  }
  return new ZuulError('connection-failed', `${request}: no answer: ${reason}`, { cause });
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
