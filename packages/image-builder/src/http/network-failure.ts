import { errnoOf } from '../system-error.ts';

/** Kind of a {@link NetworkFailure}. */
export type NetworkFault =
  /** The certificate is signed by an unknown authority. */
  | 'unknown-authority'
  /** The certificate has expired, was revoked, or is not for servers. */
  | 'invalid-certificate'
  /** The certificate is for another host name. */
  | 'other-host-name'
  | 'redirect-loop'
  | 'body-too-long'
  /** There was no connection: the request had no effect. */
  | 'not-sent'
  /** The server may have received the request. */
  | 'no-answer';

/** Codes of OpenSSL and Node. */
const FAULTS: Readonly<Record<string, NetworkFault>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'unknown-authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'unknown-authority',
  UNABLE_TO_GET_ISSUER_CERT: 'unknown-authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unknown-authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unknown-authority',
  CERT_UNTRUSTED: 'unknown-authority',
  CERT_SIGNATURE_FAILURE: 'unknown-authority',
  INVALID_CA: 'unknown-authority',
  CERT_HAS_EXPIRED: 'invalid-certificate',
  CERT_NOT_YET_VALID: 'invalid-certificate',
  CERT_REVOKED: 'invalid-certificate',
  INVALID_PURPOSE: 'invalid-certificate',
  ERR_TLS_CERT_ALTNAME_INVALID: 'other-host-name',
  ERR_TOO_MANY_REDIRECTS: 'redirect-loop',
  ECONNREFUSED: 'not-sent',
  ENOTFOUND: 'not-sent',
  EAI_AGAIN: 'not-sent',
  EHOSTUNREACH: 'not-sent',
  ENETUNREACH: 'not-sent',
};

/** A request without a usable answer. The message is the reason alone; it holds no header and no user information. */
export class NetworkFailure extends Error {
  override readonly name = 'NetworkFailure';
  readonly fault: NetworkFault;

  constructor(fault: NetworkFault, reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.fault = fault;
  }

  /** Whether the certificate of the server is at fault. */
  get isCertificate(): boolean {
    return ['unknown-authority', 'invalid-certificate', 'other-host-name'].includes(this.fault);
  }
}

/** Translates an error of got or `node:http`. */
export function networkFailure(error: unknown): NetworkFailure {
  if (error instanceof NetworkFailure) return error;
  const isOfGot = error instanceof Error && 'options' in error;
  // An error of got carries the whole request, with its credentials: only its cause is kept.
  const source = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const cause = isOfGot && source === error ? undefined : source;
  const code = errnoOf(error) ?? errnoOf(cause);
  const message = (cause instanceof Error && cause.message) || code || 'unknown error';
  // Node names a proxy that refuses a tunnel by its whole URL.
  const reason = message.replaceAll(/\/\/[^\s/@]*@/g, '//***@');
  const shown =
    reason === message || cause === undefined ? cause : Object.assign(new Error(reason), { code });
  return new NetworkFailure(FAULTS[code ?? ''] ?? 'no-answer', reason, { cause: shown });
}
