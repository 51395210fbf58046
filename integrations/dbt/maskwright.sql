{# Generic tests of Maskwright for dbt. Copy this file into tests/generic/ of a dbt project:

     columns:
       - name: notes
         data_tests: [no_direct_identifiers]
     data_tests:
       - k_anonymous: {columns: [age_band, zip3, sex], k: 11}

   Made from the patterns of `maskwright check` by `make docs`; do not edit. The answer is a kind and two counts, never
   a value. Checksums, names of people and free text cannot be told in SQL: run `maskwright check` for them. #}

{% macro maskwright_matches(column, pattern) %}
{{- adapter.dispatch('maskwright_matches')(column, pattern) -}}
{% endmacro %}
{% macro default__maskwright_matches(column, pattern) %}regexp_matches({{ column }}, '{{ pattern }}'){% endmacro %}
{% macro postgres__maskwright_matches(column, pattern) %}({{ column }} ~ '{{ pattern }}'){% endmacro %}
{% macro redshift__maskwright_matches(column, pattern) %}({{ column }} ~ '{{ pattern }}'){% endmacro %}
{% macro bigquery__maskwright_matches(column, pattern) %}regexp_contains({{ column }}, r'{{ pattern }}'){% endmacro %}
{% macro snowflake__maskwright_matches(column, pattern) %}regexp_like({{ column }}, $${{ pattern }}$$){% endmacro %}

{% test no_direct_identifiers(model, column_name, share=0.95) %}
with looked_at as (
  select distinct cast({{ column_name }} as varchar) as v from {{ model }}
  where {{ column_name }} is not null limit 1000
), counted as (
  select 'email' as kind, 1 as least_values, count(*) as looked_at,
    coalesce(sum(case when {{ maskwright_matches('v', '^(?:[^@\\s,;<>()]{1,64}@(?:[^@\\s.,;<>()]{1,63}\\.)+[A-Za-z]{2,24})$') }} then 1 else 0 end), 0) as passing
  from looked_at
  union all
  select 'web-address' as kind, 1 as least_values, count(*) as looked_at,
    coalesce(sum(case when {{ maskwright_matches('v', '^(?:(?:[Hh][Tt][Tt][Pp][Ss]?|[Ff][Tt][Pp])://\\S+|[Ww][Ww][Ww]\\.\\S+\\.\\S+)$') }} then 1 else 0 end), 0) as passing
  from looked_at
  union all
  select 'uuid' as kind, 1 as least_values, count(*) as looked_at,
    coalesce(sum(case when {{ maskwright_matches('v', '^(?:\\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}\\}?)$') }} then 1 else 0 end), 0) as passing
  from looked_at
  union all
  select 'social-security' as kind, 3 as least_values, count(*) as looked_at,
    coalesce(sum(case when {{ maskwright_matches('v', '^(?:(?:00[1-9]|0[1-9][0-9]|[1-57-8][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])-(?:0[1-9]|[1-9][0-9])-(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3}))$') }} then 1 else 0 end), 0) as passing
  from looked_at
  union all
  select 'user-handle' as kind, 3 as least_values, count(*) as looked_at,
    coalesce(sum(case when {{ maskwright_matches('v', '^(?:@[A-Za-z0-9_.]{2,30})$') }} then 1 else 0 end), 0) as passing
  from looked_at
  union all
  select 'record-number' as kind, 3 as least_values, count(*) as looked_at,
    coalesce(sum(case when {{ maskwright_matches('v', '^(?:(?:MRN|mrn|Mrn|PATIENT|Patient|patient|PAT|Pat|pat|PID|pid|SUBJ|Subj|subj|SUBJECT|Subject|subject|MEMBER|Member|member|PROBAND|Proband|proband|HOSP|Hosp|hosp)[-_ #:.]{0,2}[0-9]{4,12})$') }} then 1 else 0 end), 0) as passing
  from looked_at
)
select kind, passing, looked_at from counted where looked_at >= least_values and passing >= {{ share }} * looked_at
{% endtest %}

{% test k_anonymous(model, columns, k=5) %}
select count(*) as people from {{ model }} group by {{ columns | join(', ') }} having count(*) < {{ k }}
{% endtest %}
