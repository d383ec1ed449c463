import type { FastifyRequest } from 'fastify';
import { cancel } from '../site/cancel.ts';
import { askManager } from '../site/manager-requests.ts';
import type { User } from './access.ts';
import type { WebContext } from './context.ts';
import { HttpError } from './http-error.ts';

/** Actions of the page and the API. Each returns a description of its effect. */
export const ACTIONS = {
  rebuild: asking('rebuild'),
  pause: asking('image-pause'),
  unpause: asking('image-unpause'),
  rollback: asking('rollback'),
  'delete-build': asking('dib-image-delete'),
  'delete-upload': asking('upload-delete'),
  'cancel-build': cancelling,
  'cancel-upload': cancelling,
} as const;

export type ActionName = keyof typeof ACTIONS;

/**
 * Performs a user's action.
 *
 * @param formToken the text that the form has sent back
 * @throws HttpError 401, 403; CommandError if the action is refused
 */
export async function act(
  context: WebContext,
  request: FastifyRequest,
  action: ActionName,
  subject: string,
  formToken?: string,
): Promise<string> {
  const user = requireUser(context, request, formToken);
  const done = await ACTIONS[action](context, subject, user);
  context.logger.info(`${user.name} at ${request.ip}: ${action} ${subject}: ${done}`);
  await context.view.refresh().catch(() => {}); // the next page shows the change
  return done;
}

/** @throws HttpError if the request must not change anything */
export function requireUser({ access }: WebContext, request: FastifyRequest, formToken?: string): User {
  const user = access.userOf(request);
  if (user === undefined) {
    throw new HttpError(401, 'read-only access; log in, or send the token in the header Authorization');
  }
  const isProven = user.formToken === undefined || user.formToken === formToken;
  if (!isProven || !access.isOwnPage(request)) {
    throw new HttpError(403, 'the request did not come from a form of this page; reload the page');
  }
  return user;
}

/** Makes an action that does the same as a command. */
function asking(command: string) {
  return async ({ view }: WebContext, subject: string, user: User): Promise<string> => {
    const site = { configuration: view.configuration, servers: view.servers, by: byOf(user) };
    return await view.useStore((store) => askManager(command, subject, site, store));
  };
}

/** @param id of a build or an upload */
async function cancelling({ view }: WebContext, id: string, user: User): Promise<string> {
  return await cancel(view.servers, id, byOf(user), (work) => view.useStore(work));
}

function byOf({ name }: User): string {
  return `${name} on the status page`;
}
