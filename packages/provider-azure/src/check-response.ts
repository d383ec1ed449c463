import { atOrigin, cloudError, responseMeter } from '@nodepool-builder/image-builder/module-kit';

/** The part of a request of the SDK that the policy reads and changes. */
interface PolicyRequest {
  url: string;
  abortSignal?: { readonly aborted: boolean };
  onDownloadProgress?: (progress: { readonly loadedBytes: number }) => void;
}

/** The part of a response that the policy reads. */
interface PolicyResponse {
  readonly status: number;
  readonly bodyAsText?: string | null;
}

/** A policy in the SDK's pipeline. */
interface Policy {
  readonly name: string;
  sendRequest<Q extends PolicyRequest, A extends PolicyResponse>(
    request: Q,
    next: (request: Q) => Promise<A>,
  ): Promise<A>;
}

/**
 * Creates the policy that refuses every response that Resource Manager never sends, such as the page of a proxy. It also
 * limits what the SDK reads into memory. Links in responses, such as that to the next page, are requested at the endpoint:
 * requests have a token.
 */
export function checkResponse(subject: string, endpoint: string): Policy {
  return {
    name: 'checkResponse',
    async sendRequest(request, next) {
      request.url = atOrigin(new URL(request.url), new URL(endpoint)).href;
      const meter = responseMeter(subject);
      const tooLong = new AbortController();
      const { abortSignal: given } = request;
      const signals = [tooLong.signal, ...(given instanceof AbortSignal ? [given] : [])];
      request.abortSignal = AbortSignal.any(signals);
      request.onDownloadProgress = ({ loadedBytes }) => {
        if (loadedBytes > meter.limit) tooLong.abort();
      };
      try {
        const response = await next(request);
        const { status, bodyAsText: body } = response;
        meter.add(body?.length ?? 0);
        const isSuccess = status >= 200 && status < 300;
        if (!isSuccess || !body || /^\s*\{/.test(body)) return response;
        throw cloudError('invalid-answer', subject, 'the response is not JSON of Resource Manager');
      } catch (error) {
        if (!tooLong.signal.aborted) throw error;
        throw cloudError('response-too-large', subject, meter.reason);
      }
    },
  };
}
