import type { ObjectSchema } from '@nodepool-builder/image-builder';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { nameFindings } from './image-faults.ts';
import { moduleOf, toEntry } from './provider.ts';
import type { ProviderModules } from './provider-schema.ts';
import type { ConfigurationSource, ProviderSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

/** Reports what the schema accepts in `providers` but a module, a command or a hook cannot use. */
export function providerFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  modules: ProviderModules,
  absolute: (path: string) => string,
): readonly Fault[] {
  return (source.providers ?? [])
    .flatMap((provider, index) => findings(provider, `/providers/${index}`, modules, absolute))
    .map((finding) => toFault(document, finding));
}

function findings(
  provider: ProviderSource,
  pointer: string,
  modules: ProviderModules,
  absolute: (path: string) => string,
): readonly Finding[] {
  const module = moduleOf(provider, modules);
  const { type } = module;
  const settings: ObjectSchema = module.settings;
  const missing = (settings.required ?? [])
    .filter((key) => provider[key] === undefined)
    .map((key): Finding => {
      const reason = `lacks the key "${key}", which type: ${type} needs`;
      return { pointer, reason, remedy: settings.properties[key]?.$comment ?? `add "${key}: …"` };
    });
  const checks = missing.length > 0 ? [] : (module.check?.(toEntry(provider, module, absolute)) ?? []);
  const found = [...missing, ...[...checks].map((check) => ({ ...check, pointer: pointer + check.pointer }))];
  const images = (provider.images ?? []).flatMap((image, index) => {
    const place = `${pointer}/images/${index}`;
    const isReported = found.some((finding) => finding.pointer === `${place}/name`);
    const isBuilt = !image.diskimage && image['base-image'] != null;
    const named = isBuilt
      ? nameFindings(image.name, `${place}/name`)
      : optionFindings(image.name, `${place}/name`);
    return [
      ...(isReported ? [] : named),
      ...(module.openImages === undefined ? futile(image, place, type) : []),
    ];
  });
  return [...optionFindings(provider.name, `${pointer}/name`), ...found, ...images];
}

/** A warning: the Python builder had no hook with the name as an argument. */
function optionFindings(name: string, pointer: string): readonly Finding[] {
  if (!name.startsWith('-')) return [];
  const reason = 'begins with a "-": commands and hooks take it for an option';
  return [{ pointer, severity: 'warning', reason, remedy: 'choose a plain name' }];
}

function futile(
  { diskimage }: { readonly diskimage?: string | null },
  place: string,
  type: string,
): readonly Finding[] {
  if (!diskimage) return [];
  const reason = `means nothing: a provider of type ${type} takes no images`;
  return [{ pointer: `${place}/diskimage`, reason, remedy: 'remove the image there', severity: 'warning' }];
}
