import {
  boolYaml11Tag,
  intYaml11Tag,
  NOT_RESOLVED,
  type ScalarTagDefinition,
  type Schema,
  YAML11_SCHEMA,
} from 'js-yaml';

/** YAML 1.1 as PyYAML reads it: `y` and `n` are text there, and so is `01:30`. */
export const PYYAML_SCHEMA: Schema = YAML11_SCHEMA.withTags(
  textWhere(/^[yn]$/i, boolYaml11Tag),
  textWhere(/^[-+]?0[0-9_]*:/, intYaml11Tag),
);

function textWhere<T>(pattern: RegExp, tag: ScalarTagDefinition<T>): ScalarTagDefinition<T> {
  return {
    ...tag,
    resolve: (source, isExplicit, name) =>
      pattern.test(source) ? NOT_RESOLVED : tag.resolve(source, isExplicit, name),
  };
}
